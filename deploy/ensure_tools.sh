#!/usr/bin/env bash
# Sees to it that programs which are no Python packages are there. Usage: ensure_tools.sh java|monitoring|sources
#   java        Java 17 or newer and Maven, for the real Apache Kafka on this machine
#   monitoring  Prometheus, Alertmanager and Chromium, for the tests of the monitoring
#   sources     ROS 1 and mosquitto, for the tests of the sources
# Installs them as root on Debian and Ubuntu; elsewhere says what is missing, and exits with 1.
set -euo pipefail

has() { command -v "$1" >/dev/null; }

# Where the bridge looks for it (producers/bridges/ros_common.py).
has_rospy() { compgen -G '/usr/lib/python3/dist-packages/rospy' || compgen -G '/opt/ros/*/lib/python3/dist-packages/rospy'; } >/dev/null

java_major() {
    local version
    version=$(java -version 2>&1 | sed -n 's/.*version "\([^"]*\)".*/\1/p' | head -n 1) || true
    version=${version#1.}
    version=${version%%[!0-9]*}
    echo "${version:-0}"
}

# What is missing, one a line: its name, and the package that brings it.
missing() {
    case $1 in
    java)
        if [ "$(java_major)" -lt 17 ]; then echo "Java 17 or newer:$(debian_java)"; fi
        if ! has mvn; then echo "Maven (mvn):maven"; fi
        ;;
    monitoring)
        if ! { has prometheus && has promtool; }; then echo "Prometheus (with promtool):prometheus"; fi
        if ! { { has prometheus-alertmanager || has alertmanager; } && has amtool; }; then
            echo "Alertmanager (with amtool):prometheus-alertmanager"
        fi
        if ! { has chromium || has chromium-browser || has google-chrome; }; then echo "Chromium:chromium"; fi
        ;;
    sources)
        if ! has rosmaster; then echo "ROS 1 (rosmaster):ros-core"; fi
        if ! has_rospy; then echo "rospy:python3-rospy"; fi
        if ! { has mosquitto || [ -x /usr/sbin/mosquitto ]; }; then echo "mosquitto:mosquitto"; fi
        ;;
    esac
}

# The oldest Java that will do and that this release has.
debian_java() {
    local major
    for major in 17 21 25; do
        if has apt-cache && apt-cache policy "openjdk-$major-jre-headless" | grep -q 'Candidate: [0-9]'; then
            echo "openjdk-$major-jre-headless"
            return
        fi
    done
    echo "default-jre-headless"
}

# Packages of servers start them, which is not wanted of us: the tests start their own.
without_services() {
    local policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap "rm -f $policy" EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    "$@"
}

names() { missing "$1" | cut -d: -f1 | paste -sd, | sed 's/,/, /g'; }
packages() { missing "$1" | cut -d: -f2; }

group=${1:-}
if [ "$group" != java ] && [ "$group" != monitoring ] && [ "$group" != sources ]; then
    sed -n '2,5s/^# *//p' "$0" >&2
    exit 2
fi
if [ -z "$(missing "$group")" ]; then exit 0; fi

if [ "$(id -u)" -eq 0 ] && has apt-get; then
    echo "Installing with apt-get: $(names "$group") ..." >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    mapfile -t wanted < <(packages "$group")
    without_services apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null
    # Nor shall they come up with the machine.
    for service in prometheus prometheus-alertmanager mosquitto; do
        if printf '%s\n' "${wanted[@]}" | grep -qx "$service" && has systemctl; then
            systemctl disable --quiet "$service" || true
        fi
    done
fi

if [ -n "$(missing "$group")" ]; then
    {
        echo "This machine lacks: $(names "$group")."
        case $group in
        java)
            echo "The real Apache Kafka needs them. Debian, Ubuntu: sudo apt-get install $(packages java | paste -sd' ');" \
                "macOS: brew install openjdk@17 maven. Or use the embedded broker, which needs neither: make demo"
            ;;
        monitoring)
            echo "The tests of the monitoring need them. Debian, Ubuntu: sudo apt-get install" \
                "$(packages monitoring | paste -sd' '); macOS: brew install prometheus alertmanager, and a Chromium"
            ;;
        sources)
            echo "The tests of the sources need them. Debian 12: sudo apt-get install $(packages sources | paste -sd' ');" \
                "elsewhere ROS Noetic, and mosquitto (macOS: brew install mosquitto)"
            ;;
        esac
    } >&2
    exit 1
fi
