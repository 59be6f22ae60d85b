import socket

import pytest

from springback.deploy.broker_process import cluster_id, free_port
from springback.deploy.brokers import ExternalBroker, open_broker
from springback.deploy.errors import BrokerUnavailableError, DeployError


def test_a_broker_that_runs_is_taken_as_it_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with open_broker(address) as broker:
            assert broker.address == address
            broker.check()


def test_one_of_several_addresses_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        addresses = f"127.0.0.1:{free_port()}, 127.0.0.1:{server.getsockname()[1]}"
        with open_broker(addresses) as broker:
            assert broker.address == addresses


def test_a_broker_that_is_not_there_is_told() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(BrokerUnavailableError, match=rf"{address}: Connection refused.*--broker embedded"):
        ExternalBroker(address).__enter__()


@pytest.mark.parametrize("choice", ["", "rabbit", "localhost", "localhost:9092,", "Embedded"])
def test_what_is_no_choice_is_told(choice: str) -> None:
    with pytest.raises(DeployError, match="expected `embedded`, `kafka` or HOST:PORT"):
        open_broker(choice)


@pytest.mark.broker
def test_the_embedded_one_is_started() -> None:
    with open_broker("embedded") as broker:
        assert cluster_id(broker.address) is not None
    assert cluster_id(broker.address) is None
