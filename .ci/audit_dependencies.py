"""Whether what is installed has known vulnerabilities. It ends with 1 if so, and with a sentence where nobody can say.

The answer is that of `pip-audit`, which asks an index on the network, within two minutes. What has been
looked at and found harmless is passed over by its number: AUDIT_IGNORE="PYSEC-2026-1 GHSA-x".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

TIMEOUT_S = float(os.environ.get("AUDIT_TIMEOUT_S", "120"))
SKIPPED = "Dependencies were not audited: no index of vulnerabilities can be reached"


def main() -> int:
    """Asks, and says what was found."""
    ignored = [word for number in os.environ.get("AUDIT_IGNORE", "").split() for word in ("--ignore-vuln", number)]
    command = ["pip-audit", "--local", "--skip-editable", "--progress-spinner", "off", "--format", "json", *ignored]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        print(f"{SKIPPED} within {TIMEOUT_S:g} s.")
        return 0
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"{SKIPPED} ({(done.stderr.strip().splitlines() or ['it said nothing'])[-1]}).")
        return 0
    audited = [package for package in found if "skip_reason" not in package]
    if not audited:
        print(f"{SKIPPED} (the one that was asked knows none of {len(found)} packages).")
        return 0
    bad = [(package, one) for package in audited for one in package["vulns"]]
    for package, one in bad:
        mended = ", ".join(one["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']} has {one['id']}, mended in {mended}", file=sys.stderr)
    known = f"{len(audited)} of {len(found)} packages were audited"
    print(f"{known}: {len(bad)} known vulnerabilities." if bad else f"{known}: no known vulnerability.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
