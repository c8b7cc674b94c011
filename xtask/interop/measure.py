"""measure.py COMMAND...: runs it and prints seconds, peak resident and peak anonymous KiB as JSON.

The first two are the kernel's account of the process; the third is sampled every 5 ms.
"""

import json
import os
import sys
import threading
import time


def main():
    start = time.monotonic()
    child = os.posix_spawnp(
        sys.argv[1], sys.argv[1:], os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, 1, 2)],
    )
    peak = 0
    over = threading.Event()

    def sample():
        nonlocal peak
        while not over.wait(0.005):
            try:
                with open(f"/proc/{child}/status") as status:
                    for line in status:
                        if line.startswith("RssAnon:"):
                            peak = max(peak, int(line.split()[1]))
            except OSError:
                return

    sampler = threading.Thread(target=sample)
    sampler.start()
    _, status, usage = os.wait4(child, 0)
    seconds = time.monotonic() - start
    over.set()
    sampler.join()
    if status:
        sys.exit(f"{sys.argv[1]} ended with status {status}")
    print(json.dumps({"seconds": seconds, "resident": usage.ru_maxrss, "anonymous": peak}))


main()
