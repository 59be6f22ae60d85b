"""Free TCP ports of the loopback interface for servers that cannot tell which port they took."""

import random
import socket

# Below every system's range of ephemeral ports: in that range a client that tries again and again to reach a server
# that is down can be given the server's own port, connect to itself, and so keep the server from coming back.
_PORTS = range(15_000, 32_000)
_TRIES = 200


def free_port() -> int:
    """A TCP port that nothing on 127.0.0.1 holds now; it may be taken before it is used.

    Raises:
        OSError: No free one was found.
    """
    choose = random.SystemRandom()
    for _ in range(_TRIES):
        port = choose.choice(_PORTS)
        if is_free(port):
            return port
    message = f"none of {_TRIES} ports from {_PORTS.start} to {_PORTS.stop - 1} that were tried is free on 127.0.0.1"
    raise OSError(message)


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket() as probe:
        # Without this option, connections of a server that has just ended would still hold its port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
