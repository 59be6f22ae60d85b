"""A look at the broker every few seconds: whether it can be used, and whether the topics are still as they were.

Stream engines and clients try again for ever, without a word on why. And whoever adds a partition to a topic moves
producers' keys away from the state that belongs to them, which no client reports at all.
"""

import asyncio
from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from springback.producers.broker_fault import UNANSWERED, BrokerFault, FaultLog, access_fault, find_fault_soon
from springback.stream_processors.errors import BrokerFaultError, TopicMismatchError
from springback.stream_processors.service.kafka_connection import KafkaConnection
from springback.stream_processors.topics import partitions_of_all

LOOK_INTERVAL_S = 5.0
_ANSWER_TIMEOUT_S = 5.0


async def check_broker(kafka: KafkaConnection) -> None:
    """Looks once whether the broker can be used, for a command that cannot wait.

    Raises:
        BrokerFaultError: it cannot, and why.
    """
    fault = await find_fault_soon(kafka.bootstrap, kafka.client_options())
    if fault is not None:
        raise BrokerFaultError(*fault)


def fault_of(error: BaseException) -> BrokerFault:
    """The fault that an error of a client stands for; `unanswered` where it does not say more.

    >>> fault_of(BrokerFaultError("tls", "no certificate")).kind, fault_of(OSError("reset")).kind
    ('tls', 'unanswered')
    """
    if isinstance(error, BrokerFaultError):
        return BrokerFault(error.kind, error.detail)
    return access_fault(error) or BrokerFault(UNANSWERED, repr(error))


async def watch_broker(
    kafka: KafkaConnection, expected: Mapping[str, int], faults: FaultLog, interval_s: float = LOOK_INTERVAL_S
) -> None:
    """Looks again and again, until cancelled.

    Args:
        kafka: how to reach the broker.
        expected: the topics that are read and written, with their partitions.
        faults: learns what keeps the broker from being used.
        interval_s: how long between two looks.

    Raises:
        TopicMismatchError: partitions were added to a topic.
    """
    while True:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap, **kafka.client_options())
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                await admin.start()
            while True:
                async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                    found = await partitions_of_all(admin)
                faults.clear()
                check_not_grown(found, expected)
                await asyncio.sleep(interval_s)
        except (KafkaError, TimeoutError, OSError) as error:
            faults.note(access_fault(error) or await find_fault_soon(kafka.bootstrap, kafka.client_options()))
        finally:
            await admin.close()
        await asyncio.sleep(interval_s)


def check_not_grown(found: Mapping[str, int], expected: Mapping[str, int]) -> None:
    """Checks that no topic has more partitions than it was declared with. One that is missing is another matter.

    Raises:
        TopicMismatchError: one has.
    """
    grown = [
        f"{name} has {found[name]} in place of {count}"
        for name, count in expected.items()
        if found.get(name, 0) > count
    ]
    if grown:
        most = max(found[name] for name in expected if name in found)
        message = (
            f"Partitions were added to topics: {'; '.join(grown)}. Producers' keys move to other partitions than their "
            "state is in, so nothing is read on: counts would be wrong without a word. Kafka takes no partition away "
            f"again. Stop the producers and go on under another prefix: `springback topics --prefix NEW --partitions "
            f"{most}`, and the same settings for every part."
        )
        raise TopicMismatchError(message)
