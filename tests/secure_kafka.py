"""A real Kafka with logins, TLS and access rules, as a cluster that others share would have it."""

import base64
import contextlib
import json
import re
import shlex
import time
import uuid
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from kafka.admin import (  # type: ignore[import-untyped]
    ACL,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)

from springback.deploy.apache_kafka import ApacheKafka
from springback.deploy.child_process import ChildProcess
from springback.stream_processors.access_rights import EVERY_PART, PARTS
from springback.stream_processors.service.kafka_connection import KafkaConnection, SaslMechanism

ROLES = (*PARTS, EVERY_PART, "nobody")
"""The users: one for each part, one for all of them, and one that is granted nothing."""

_START_S = 150.0
_MODULES = "org.apache.kafka.common.security"
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=ADMIN://127.0.0.1:{admin},CONTROLLER://127.0.0.1:{controller},LOGIN://127.0.0.1:{login},MUTUAL://127.0.0.1:{mutual},PLAINLOGIN://127.0.0.1:{plain_login}
advertised.listeners=ADMIN://127.0.0.1:{admin},LOGIN://127.0.0.1:{login},MUTUAL://127.0.0.1:{mutual},PLAINLOGIN://127.0.0.1:{plain_login}
listener.security.protocol.map=ADMIN:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_SSL,MUTUAL:SSL,PLAINLOGIN:SASL_PLAINTEXT
inter.broker.listener.name=ADMIN
controller.listener.names=CONTROLLER
log.dirs={data}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=false
connection.failed.authentication.delay.ms=100
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={ca}
listener.name.mutual.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^.*CN=([^,]+).*$/$1/,DEFAULT
listener.name.login.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.login.plain.sasl.jaas.config={modules}.plain.PlainLoginModule required {plain_users};
listener.name.login.scram-sha-256.sasl.jaas.config={modules}.scram.ScramLoginModule required;
listener.name.login.scram-sha-512.sasl.jaas.config={modules}.scram.ScramLoginModule required;
listener.name.login.oauthbearer.sasl.jaas.config={modules}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
listener.name.plainlogin.sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.plainlogin.scram-sha-256.sasl.jaas.config={modules}.scram.ScramLoginModule required;
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
log.cleaner.dedupe.buffer.size=16777216
"""  # noqa: E501


class SecureKafka(ApacheKafka):
    """A Kafka node with a listener for each way to be let in; nothing is granted to anybody but its administrator.

    The administrator's listener (`address`) is plain, for the tests' own preparations.

    Args:
        directory: where certificates and secrets are written.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._ports = [0] * 5
        self._secrets = directory
        self._ca = trustme.CA()
        self.ca_file = directory / "ca.pem"
        self._ca.cert_pem.write_to_path(str(self.ca_file))
        self._keystore = directory / "broker.pem"
        _write_pair(self._ca.issue_cert("127.0.0.1", "localhost"), self._keystore)
        self.password_files = {role: self._secret(role, password_of(role)) for role in ROLES}

    @property
    def login_address(self) -> str:
        """Where a login over TLS is asked for."""
        return f"127.0.0.1:{self._ports[2]}"

    @property
    def mutual_address(self) -> str:
        """Where a client's certificate is asked for."""
        return f"127.0.0.1:{self._ports[3]}"

    @property
    def plain_login_address(self) -> str:
        """Where a login is asked for without TLS."""
        return f"127.0.0.1:{self._ports[4]}"

    def by_login(self, role: str, mechanism: SaslMechanism = "SCRAM-SHA-512") -> KafkaConnection:
        """How a role reaches it with a password, or with a token that says who it is."""
        token = self._secret(f"{role}-token", token_of(role)) if mechanism == "OAUTHBEARER" else ""
        return KafkaConnection(
            bootstrap=self.login_address,
            security_protocol="SASL_SSL",
            sasl_mechanism=mechanism,
            sasl_username="" if token else role,
            sasl_password_file="" if token else str(self.password_files[role]),
            sasl_token_file=str(token),
            tls_ca_file=str(self.ca_file),
        )

    def by_certificate(self, role: str) -> KafkaConnection:
        """How a role reaches it with a certificate."""
        pair = self._secrets / f"{role}.pem"
        _write_pair(self._ca.issue_cert(f"{role}@springback", common_name=role), pair)
        return KafkaConnection(
            bootstrap=self.mutual_address,
            security_protocol="SSL",
            tls_ca_file=str(self.ca_file),
            tls_certificate_file=str(pair),
        )

    def another_ca(self) -> Path:
        """The certificate of a CA that has signed nothing here."""
        file = self._secrets / "another-ca.pem"
        trustme.CA().cert_pem.write_to_path(str(file))
        return file

    def _secret(self, name: str, content: str) -> Path:
        file = self._secrets / f"{name}.secret"
        file.write_text(f"{content}\n")
        file.chmod(0o600)
        return file

    def _make_ready(self) -> str:
        admin, controller, login, mutual, plain_login = self._ports
        users = " ".join(f'user_{role}="{password_of(role)}"' for role in ROLES)
        self._settings_path.write_text(
            _SETTINGS.format(
                admin=admin,
                controller=controller,
                login=login,
                mutual=mutual,
                plain_login=plain_login,
                data=self._directory / f"data-{admin}",
                keystore=self._keystore,
                ca=self.ca_file,
                modules=_MODULES,
                plain_users=users,
            )
        )
        log_settings = files("springback.deploy") / "kafka" / "log4j2.properties"
        (self._directory / "log4j2.properties").write_text(log_settings.read_text())
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        scram = [
            f"--add-scram={mechanism}=[name={role},password={password_of(role)}]"
            for role in ROLES
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        ]
        tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config", str(self._settings_path)]
        command = [str(self._java), "-Xmx128m", *self._classpath(), *tool, *scram]
        with ChildProcess("Kafka's storage tool", command, self._log_path) as child:
            if child.wait(_START_S) != 0:
                child.check()
        return cluster


def password_of(role: str) -> str:
    """The password of a role."""
    return f"{role}-has-a-secret"


def token_of(role: str) -> str:
    """An unsigned token, which a Kafka takes that was not told whom to trust."""
    now_s = int(time.time())
    claims = {"sub": role, "iat": now_s, "exp": now_s + 3600}
    return ".".join((_part({"alg": "none"}), _part(claims), ""))


def _part(content: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def _write_pair(issued: trustme.LeafCert, file: Path) -> None:
    """A key in the form that Kafka reads, and its certificate, in one file."""
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    file.chmod(0o600)
    for certificate in issued.cert_chain_pems:
        certificate.write_to_path(str(file), append=True)


def grant(kafka: SecureKafka, commands: Iterable[str]) -> None:
    """Does what the commands of `kafka-acls` say, which Kafka's server alone does not bring."""
    acls = []
    for command in commands:
        words = shlex.split(command, comments=True)
        if not words:
            continue
        assert words[:6] == [
            *("kafka-acls.sh", "--bootstrap-server", words[2], "--command-config", "admin.properties", "--add")
        ]
        given: dict[str, list[str]] = {}
        for option, value in zip(words[6::2], words[7::2], strict=True):
            given.setdefault(option.removeprefix("--"), []).append(value)
        users, operations = given.pop("allow-principal"), given.pop("operation")
        ((kind, names),) = given.items()
        acls += [
            ACL(
                user,
                "*",
                ACLOperation[_snake(operation)],
                ACLPermissionType.ALLOW,
                ResourcePattern(ResourceType[kind.upper()], name),
            )
            for user in users
            for operation in operations
            for name in names
        ]
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=kafka.address)) as admin:
        assert not admin.create_acls(acls)["failed"]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
