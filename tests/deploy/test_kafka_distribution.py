import threading
from pathlib import Path

import pytest

from springback.deploy.apache_kafka import KAFKA_VERSION, find_java, kafka_jars
from springback.deploy.errors import DeployError, MissingToolError

# Stands in for Maven: puts one jar where it is told to, and notes that it was called.
FAKE_MAVEN = r"""#!/bin/sh
for argument; do case $argument in -DoutputDirectory=*) out=${argument#*=};; --file) ;; esac; done
echo called >> "$FAKE_MAVEN_CALLS"
/bin/mkdir -p "$out" && : > "$out/kafka_2.13-4.1.0.jar"
"""


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def bin_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only directory on the PATH."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_MAVEN_CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return path


def says_version(version: str) -> str:
    return f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n"


def test_no_java_is_told(bin_directory: Path) -> None:
    with pytest.raises(
        MissingToolError, match=r"needs Java 17 or newer, but there is no `java`.*apt install openjdk-17"
    ):
        find_java()


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_392", "16"])
def test_an_old_java_is_told(bin_directory: Path, version: str) -> None:
    executable(bin_directory / "java", says_version(version))
    with pytest.raises(MissingToolError, match=f'bin/java is: openjdk version "{version}"'):
        find_java()


def test_a_java_that_does_not_run_is_told(bin_directory: Path) -> None:
    executable(bin_directory / "java", "#!/bin/sh\necho Unable to locate a Java Runtime. >&2\nexit 1\n")
    with pytest.raises(MissingToolError, match="Unable to locate a Java Runtime"):
        find_java()


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_a_java_that_will_do_is_found(bin_directory: Path, version: str) -> None:
    java = executable(bin_directory / "java", says_version(version))
    assert find_java() == java


def test_java_home_comes_first(bin_directory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable(bin_directory / "java", says_version("17"))
    java = executable(tmp_path / "jdk" / "bin" / "java", says_version("21"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find_java() == java
    java.unlink()
    with pytest.raises(MissingToolError, match=r"JAVA_HOME \(.*jdk\) has no bin/java"):
        find_java()


def test_no_maven_is_told(bin_directory: Path) -> None:
    with pytest.raises(MissingToolError, match=r"there is no `mvn` on the PATH.*apt install maven.*--broker embedded"):
        kafka_jars()


def test_jars_are_fetched_once_also_by_several_at_once(bin_directory: Path, tmp_path: Path) -> None:
    executable(bin_directory / "mvn", FAKE_MAVEN)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(kafka_jars())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jars = tmp_path / "cache" / "springback" / f"kafka-{KAFKA_VERSION}"
    assert found == [jars] * 3
    assert (tmp_path / "calls").read_text().splitlines() == ["called"]
    (bin_directory / "mvn").unlink()
    assert kafka_jars() == jars
    assert {path.name for path in jars.parent.iterdir()} == {jars.name, "kafka.lock"}


@pytest.mark.parametrize(
    ("maven", "expected"),
    [
        ("#!/bin/sh\necho Could not transfer artifact\nexit 1\n", r"(?s)exit code 1.*\| Could not transfer artifact"),
        ("#!/bin/sh\necho done\n", r"(?s)exit code 0.*\| done"),
    ],
)
def test_a_failed_fetch_is_told_and_leaves_nothing(
    bin_directory: Path, maven: str, expected: str, tmp_path: Path
) -> None:
    executable(bin_directory / "mvn", maven)
    with pytest.raises(DeployError, match=expected):
        kafka_jars()
    assert {path.name for path in (tmp_path / "cache" / "springback").iterdir()} == {"kafka.lock"}
