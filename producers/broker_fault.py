"""Why a Kafka broker cannot be used: its address, TLS, the login or the user's rights, told apart within seconds.

Kafka's clients say of all of these that they are unable to connect, some of them after a minute. So every part that
needs a broker looks with `find_fault` before it connects, and again when its client complains. The look is made with
kafka-python's own encoding and logins, over a socket of its own, and changes nothing at the broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

with warnings.catch_warnings():
    # kafka-python 3.0 reads its own files in a way that Python 3.11 and 3.12 call deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.errors import for_code  # type: ignore[import-untyped]
    from kafka.net.sasl import SASL_MECHANISMS, get_sasl_mechanism  # type: ignore[import-untyped]
    from kafka.net.sasl.oauth import AbstractTokenProvider  # type: ignore[import-untyped]
    from kafka.protocol.metadata import (  # type: ignore[import-untyped]
        ApiVersionsRequest,
        MetadataRequest,
    )
    from kafka.protocol.parser import KafkaProtocol  # type: ignore[import-untyped]
    from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest  # type: ignore[import-untyped]

LOOK_TIMEOUT_S = 5.0
"""How long one look may take, so that with what comes before and after it every fault is told within 10 s."""

ADDRESS, TLS, AUTHENTICATION, AUTHORIZATION = "address", "tls", "authentication", "authorization"
UNANSWERED, PROTOCOL = "unanswered", "protocol"

_REPEAT_S = 60.0
_LARGEST_ANSWER_BYTES = 16 * 1024 * 1024
_MOST_ADVERTISED = 5
_ALERT = b"\x15\x03"  # how an answer begins that is TLS's, where none was expected
_HTTP = b"HTTP"
_RIGHTS = {29: "a topic", 30: "a consumer group", 31: "the cluster", 53: "a transactional id"}
_UNSUPPORTED_MECHANISM, _ILLEGAL_SASL_STATE = 33, 34
_log = logging.getLogger(__name__)


class BrokerFault(NamedTuple):
    """Why a broker cannot be used.

    Attributes:
        kind: `address`, `tls`, `authentication`, `authorization`, `unanswered` where a connection is taken and then
            nothing comes, or `protocol` where something other than a Kafka broker answers.
        detail: what was found, and what to do about it. It holds no secret.
    """

    kind: str
    detail: str

    def __str__(self) -> str:
        """Both, as they stand in logs and on health pages."""
        return f"{self.kind}: {self.detail}"


class _FaultError(Exception):
    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.fault = BrokerFault(kind, detail)


_FURTHEST_FIRST = (AUTHORIZATION, AUTHENTICATION, PROTOCOL, UNANSWERED, TLS, ADDRESS)


def find_fault(
    bootstrap: str | Sequence[str], options: Mapping[str, Any], timeout_s: float = LOOK_TIMEOUT_S
) -> BrokerFault | None:
    """Connects, logs in and asks who the brokers are; None if one of the addresses will do.

    Of several faults it is the one of the address that got furthest. A broker's list of rights is not read:
    `access_fault` makes a fault of what it refuses later.

    Args:
        bootstrap: HOST:PORT of a broker, several with commas between or in a list.
        options: the security options of a client of kafka-python or aiokafka.
        timeout_s: the longest that it takes, whatever is at the addresses.
    """
    addresses = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    deadline = time.monotonic() + timeout_s
    found: queue.Queue[BrokerFault | None] = queue.Queue()

    def look(address: str) -> None:
        try:
            _look(address.strip(), options, deadline)
        except _FaultError as error:
            found.put(error.fault)
        except Exception as error:  # a library's surprise: it must be told, and must not end the look at the others
            found.put(BrokerFault(PROTOCOL, f"{address.strip()}: {type(error).__name__}: {error}"))
        else:
            found.put(None)

    for address in addresses:
        # Resolving a name cannot be interrupted: whoever asks does not wait for it.
        threading.Thread(target=look, args=(address,), name="springback-broker-look", daemon=True).start()
    faults: list[BrokerFault] = []
    for _ in addresses:
        try:
            fault = found.get(timeout=max(0.01, deadline + 0.5 - time.monotonic()))
        except queue.Empty:
            silent = ", ".join(address.strip() for address in addresses)
            fault = BrokerFault(ADDRESS, f"{silent}: no answer within {timeout_s:g} s, nor to the look-up of its name")
        if fault is None:
            return None
        faults.append(fault)
    return min(faults, key=lambda fault: _FURTHEST_FIRST.index(fault.kind))


async def find_fault_soon(
    bootstrap: str | Sequence[str], options: Mapping[str, Any], timeout_s: float = LOOK_TIMEOUT_S
) -> BrokerFault | None:
    """`find_fault` for an event loop; one that is cancelled keeps nobody waiting."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[BrokerFault | None] = loop.create_future()

    def look() -> None:
        fault = find_fault(bootstrap, options, timeout_s)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, found, fault)

    threading.Thread(target=look, name="springback-broker-look", daemon=True).start()
    return await found


def _settle(found: asyncio.Future[BrokerFault | None], fault: BrokerFault | None) -> None:
    if not found.done():
        found.set_result(fault)


def access_fault(error: BaseException | None) -> BrokerFault | None:
    """The fault that an error of kafka-python or aiokafka stands for if the broker refuses the user something."""
    what = _RIGHTS.get(getattr(error, "errno", None) or 0)
    if what is None or isinstance(error, OSError):  # whose numbers are the system's
        return None
    said = str(error).strip() or type(error).__name__
    return BrokerFault(
        AUTHORIZATION,
        f"the broker does not grant this user what it needs of {what} ({said}); `springback topics --acls` prints the "
        "rights of each part",
    )


class FaultLog:
    """Says why a broker cannot be used when that changes, and once a minute as long as it lasts.

    Args:
        what: is not done meanwhile, for the log.
        log: where to say it.

    Attributes:
        fault: the present one, for health pages; None where there is none.
    """

    def __init__(self, what: str, log: logging.Logger = _log) -> None:
        self.fault: BrokerFault | None = None
        self._what = what
        self._log = log
        self._told_s = 0.0

    @property
    def text(self) -> str | None:
        """The fault in words."""
        return None if self.fault is None else str(self.fault)

    def note(self, fault: BrokerFault | None) -> None:
        """Takes in what a look found. That it found nothing says less than that something has worked: see `clear`."""
        if fault is None:
            return
        now_s = time.monotonic()
        if fault != self.fault or now_s - self._told_s >= _REPEAT_S:
            self._told_s = now_s
            self._log.error("broker_fault kind=%s waits=%s reason=%s", fault.kind, self._what, fault.detail)
        self.fault = fault

    def clear(self) -> None:
        """Takes in that the broker has done what was asked of it."""
        if self.fault is not None:
            self.fault = None
            self._log.info("broker_works goes_on=%s", self._what)


def _look(address: str, options: Mapping[str, Any], deadline: float) -> None:
    security = str(options.get("security_protocol", "PLAINTEXT"))
    with _connected(address, deadline) as plain, contextlib.ExitStack() as opened:
        connection = plain
        if security.endswith("SSL"):
            connection = opened.enter_context(_encrypted(plain, address, options))
        talk = _Talk(address, connection, security, deadline)
        talk.ask(ApiVersionsRequest(version=0))
        if security.startswith("SASL_"):
            _log_in(talk, options)
        brokers = talk.ask(MetadataRequest(version=1, topics=[])).brokers
    _check_advertised(address, [(broker.host, broker.port) for broker in brokers], deadline)


@contextlib.contextmanager
def _connected(address: str, deadline: float) -> Iterator[socket.socket]:
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise _FaultError(ADDRESS, f"{address!r} is not HOST:PORT")
    try:
        connection = socket.create_connection((_host(address), int(port)), max(0.1, deadline - time.monotonic()))
    except socket.gaierror as error:
        raise _FaultError(ADDRESS, f"{address}: the name {host!r} is not known ({error.strerror})") from error
    except (OSError, UnicodeError, OverflowError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise _FaultError(
            ADDRESS, f"no broker can be reached at {address} ({said}); is it HOST:PORT of one that runs?"
        ) from error
    with connection:
        yield connection


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def _encrypted(plain: socket.socket, address: str, options: Mapping[str, Any]) -> ssl.SSLSocket:
    host = _host(address)
    try:
        return _tls_context(options).wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise _FaultError(
            TLS,
            f"the certificate of the broker at {address} is not accepted ({error.verify_message}); expected one for "
            f"{host!r} that is signed by the CA in tls_ca_file (the system's CAs without one)",
        ) from error
    except (ssl.SSLError, OSError) as error:
        raise _tls_fault(address, error) from error


def _tls_fault(address: str, error: OSError) -> _FaultError:
    said = str(getattr(error, "reason", None) or error.strerror or error)
    if isinstance(error, ssl.SSLError) and said in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return _FaultError(
            TLS, f"the broker at {address} does not speak TLS there; is security_protocol, or the port, another one?"
        )
    if any(word in said.upper() for word in ("CERTIFICATE", "BAD_CERT", "UNKNOWN_CA")):
        return _FaultError(
            TLS,
            f"the broker at {address} wants a client's certificate that it trusts ({said}); give tls_certificate_file "
            "and tls_key_file",
        )
    return _FaultError(TLS, f"TLS with the broker at {address} fails ({said}); does it speak TLS at that port?")


def _tls_context(options: Mapping[str, Any]) -> ssl.SSLContext:
    given = options.get("ssl_context")
    if isinstance(given, ssl.SSLContext):
        return given
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_cafile"))
        context.check_hostname = bool(options.get("ssl_check_hostname", True))
        if options.get("ssl_certfile"):
            password = options.get("ssl_password") or ""  # None would ask at the terminal
            context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"), password)
    except (OSError, ValueError) as error:
        raise _FaultError(
            TLS,
            f"the files of ssl_cafile, ssl_certfile and ssl_keyfile cannot be used ({error}); an encrypted key needs "
            "its ssl_password",
        ) from error
    return context


class _Talk:
    """Requests and answers over a connection, one at a time."""

    def __init__(self, address: str, connection: socket.socket, security: str, deadline: float) -> None:
        self.address = address
        self._deadline = deadline
        self._connection = connection
        self._security = security
        self._protocol = KafkaProtocol(
            client_id="springback", ident=address, receive_message_max_bytes=_LARGEST_ANSWER_BYTES
        )
        self._asked = ""

    def ask(self, request: Any) -> Any:
        self._asked = type(request).__name__
        self._protocol.send_request(request)
        first = True
        try:
            self._connection.sendall(self._protocol.send_bytes())
            while True:
                self._connection.settimeout(max(0.1, self._deadline - time.monotonic()))
                data = self._connection.recv(65536)
                if not data:
                    raise self._closed()
                if first and data.startswith(_ALERT):
                    raise _FaultError(
                        TLS,
                        f"the broker at {self.address} speaks TLS there; security_protocol must be SSL or SASL_SSL",
                    )
                if first and data.startswith(_HTTP):
                    raise _FaultError(PROTOCOL, f"a web server answers at {self.address}, not a Kafka broker")
                first = False
                answers = self._protocol.receive_bytes(data)
                if answers:
                    return answers[0][1]
        except socket.timeout as error:
            raise _FaultError(
                UNANSWERED,
                f"{self.address} takes the connection, but no Kafka broker answers; does it hang, or is it "
                "another program?",
            ) from error
        except ssl.SSLError as error:
            raise _tls_fault(self.address, error) from error
        except OSError as error:
            raise self._closed() from error

    def _closed(self) -> _FaultError:
        if self._asked == "MetadataRequest":
            return _FaultError(
                AUTHENTICATION,
                f"the broker at {self.address} closes the connection of whoever has not logged in; "
                f"security_protocol is {self._security}: must it be SASL_PLAINTEXT or SASL_SSL?",
            )
        if self._asked.startswith("Sasl"):
            return _FaultError(AUTHENTICATION, f"the broker at {self.address} closes the connection during the login")
        return _FaultError(
            TLS if not self._security.endswith("SSL") else PROTOCOL,
            f"{self.address} closes the connection without an answer; does a Kafka broker listen there, with "
            f"security_protocol {self._security}?",
        )


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """What gives kafka-python a token for OAUTHBEARER: its own form of any object that has the two methods.

    Args:
        given: has `token()`, blocking or a coroutine as aiokafka wants it, and `extensions()`.
    """

    def __init__(self, given: Any) -> None:
        super().__init__()
        self._given = given

    def token(self) -> str:
        """The token."""
        token = self._given.token()
        return str(asyncio.run(token) if asyncio.iscoroutine(token) else token)

    def extensions(self) -> Any:
        """What is sent with it."""
        return self._given.extensions()


def _log_in(talk: _Talk, options: Mapping[str, Any]) -> None:
    name = str(options.get("sasl_mechanism") or "PLAIN")
    if name not in SASL_MECHANISMS:
        raise _FaultError(AUTHENTICATION, f"sasl_mechanism is {name}, expected one of {', '.join(SASL_MECHANISMS)}")
    shaken = talk.ask(SaslHandshakeRequest(version=1, mechanism=name))
    if shaken.error_code == _UNSUPPORTED_MECHANISM or (not shaken.error_code and name not in shaken.mechanisms):
        raise _FaultError(
            AUTHENTICATION,
            f"the broker at {talk.address} has no login by {name}; sasl_mechanism must be one of "
            f"{', '.join(sorted(shaken.mechanisms))}",
        )
    if shaken.error_code == _ILLEGAL_SASL_STATE:
        raise _FaultError(
            AUTHENTICATION,
            f"the broker at {talk.address} takes no login at that port; security_protocol must be without SASL_",
        )
    if shaken.error_code:
        raise _FaultError(
            AUTHENTICATION, f"the broker at {talk.address} refuses the login: {for_code(shaken.error_code).__name__}"
        )
    given = {**options, "sasl_mechanism": name}
    if options.get("sasl_oauth_token_provider") is not None:
        given["sasl_oauth_token_provider"] = TokenProvider(options["sasl_oauth_token_provider"])
    try:
        mechanism = get_sasl_mechanism(name)(host=_host(talk.address), **given)
        while not mechanism.is_done():
            answer = talk.ask(SaslAuthenticateRequest(version=0, auth_bytes=mechanism.auth_bytes()))
            if answer.error_code:
                raise _not_admitted(talk.address, name, options, str(answer.error_message))
            mechanism.receive(answer.auth_bytes)
    except (_FaultError, OSError):
        raise
    except Exception as error:  # the mechanisms raise ValueError, KeyError and their own
        raise _not_admitted(talk.address, name, options, f"{type(error).__name__}: {error}") from error


def _not_admitted(address: str, mechanism: str, options: Mapping[str, Any], said: str) -> _FaultError:
    user = options.get("sasl_plain_username")
    named = f"the user {user!r}" if user else "this user"
    who = "the token" if mechanism == "OAUTHBEARER" else named
    return _FaultError(
        AUTHENTICATION,
        f"the broker at {address} does not admit {who} by {mechanism} ({said}): is it the right one, "
        "with the right secret?",
    )


def _check_advertised(address: str, brokers: Sequence[tuple[str, int]], deadline: float) -> None:
    """Whether one of the addresses can be reached that the brokers want to be called at; clients go there next."""
    failures = []
    for host, port in brokers[:_MOST_ADVERTISED]:
        if f"{host}:{port}" == address:
            return
        try:
            socket.create_connection((host, port), max(0.1, min(2.0, deadline - time.monotonic()))).close()
        except (OSError, UnicodeError) as error:
            failures.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    if failures:
        raise _FaultError(
            ADDRESS,
            f"the broker at {address} answers, but wants to be called where nobody can be reached from here "
            f"({'; '.join(failures)}); mend its advertised.listeners",
        )
