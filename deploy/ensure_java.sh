#!/usr/bin/env bash
# Sees to it that Java 17 or newer and Maven are there, for the real Apache Kafka on this machine.
# Installs them as root on Debian and Ubuntu; elsewhere says what is missing, and exits with 1.
set -euo pipefail

java_major() {
    local version
    version=$(java -version 2>&1 | sed -n 's/.*version "\([^"]*\)".*/\1/p' | head -n 1) || true
    version=${version#1.}
    version=${version%%[!0-9]*}
    echo "${version:-0}"
}

missing() {
    if [ "$(java_major)" -lt 17 ]; then echo "Java 17 or newer"; fi
    if ! command -v mvn >/dev/null; then echo "Maven (mvn)"; fi
}

# The oldest Java that will do and that this release has.
debian_java() {
    local major
    for major in 17 21 25; do
        if [ -n "$(apt-cache policy "openjdk-$major-jre-headless" | sed -n 's/.*Candidate: \([0-9]\)/\1/p')" ]; then
            echo "openjdk-$major-jre-headless"
            return
        fi
    done
    echo "default-jre-headless"
}

if [ -z "$(missing)" ]; then exit 0; fi

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "Installing Java and Maven with apt-get, for the real Apache Kafka ..." >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$(debian_java)" maven >/dev/null
fi

if [ -n "$(missing)" ]; then
    {
        echo "The real Apache Kafka needs, and this machine lacks: $(missing | paste -sd, | sed 's/,/, /g')."
        echo "Install them (Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless maven; macOS: brew install openjdk@17 maven),"
        echo "or use the embedded broker, which needs neither: make demo"
    } >&2
    exit 1
fi
