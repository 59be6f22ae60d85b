"""The brokers that tests share: started when first asked for, stopped after the last test."""

import os
from collections.abc import Iterator

import pytest

from deploy.apache_kafka import ApacheKafka
from deploy.embedded_broker import EmbeddedBroker
from deploy.errors import MissingToolError


@pytest.fixture(scope="session")
def embedded_broker() -> Iterator[str]:
    """HOST:PORT of an embedded broker (Tansu); use topic and group names of your own."""
    with EmbeddedBroker() as broker:
        yield broker.address


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[str]:
    """HOST:PORT of a real Apache Kafka; use topic and group names of your own."""
    try:
        kafka = ApacheKafka()
    except MissingToolError as error:
        if os.environ.get("CI"):
            raise  # CI may not skip the tests on a real Kafka
        pytest.skip(str(error))
    with kafka:
        yield kafka.address
