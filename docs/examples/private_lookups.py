"""Private look-ups in a table of 20,000 items: cells for a notebook, or a script that draws private_lookups.svg next to
itself. private_lookups.md shows the output. Needs blindfuse, matplotlib, and the program `blindfuse` on the PATH:

    pip install ./client/python matplotlib"""

# %% A table, and a server of it on this machine
from __future__ import annotations

import asyncio
import pathlib
import random
import statistics
import tempfile

try:
    import matplotlib
except ImportError:
    raise SystemExit("this example draws with matplotlib: pip install matplotlib") from None

matplotlib.use("Agg")  # in a notebook: leave this line out
import matplotlib.pyplot as plt

import blindfuse

FOLDER = pathlib.Path(tempfile.mkdtemp())
CHANCE = random.Random(7)

# A drug register: a code, and the text that goes with it.
table = {f"D{code:06}": f"batch {CHANCE.randrange(10**6):06}, " + "recalled" * (CHANCE.random() < 0.01)
         for code in CHANCE.sample(range(10**6), 20_000)}

database = blindfuse.Database.build(table, FOLDER / "register", threads=1)
print(f"{database.report.key_count:,} keys in {database.report.shard_count} shards, built in "
      f"{database.report.seconds:.2f} s; a new client downloads {database.report.hint_bytes / 1e6:.2f} MB")

server = database.serve(threads=1)
register = server.connect(cache=FOLDER / "cache", progress=False)

# %% One look-up
present = CHANCE.sample(sorted(table), 300)
absent = [code for code in (f"D{n:06}" for n in CHANCE.sample(range(10**6), 400)) if code not in table][:300]

print(register.get(present[0]), register.get(absent[0]))
print(register.info)

# %% Can it be told from outside whether a code is in the register?
answers: dict[str, list[blindfuse.Answer]] = {"in the register": [], "not in it": []}
for pair in zip(present, absent):
    for group, code in zip(answers, pair):
        answers[group] += register.look_up([code])

for group, several in answers.items():
    sizes = {(answer.query_bytes, answer.response_bytes) for answer in several}
    waits = [answer.server_seconds * 1e3 for answer in several]
    print(f"{group}: found {sum(answer.found for answer in several)} of {len(several)}, bytes sent and received {sizes}, "
          f"the server's median {statistics.median(waits):.2f} ms")

# %% Several keys in one call
counts = [1, 2, 4, 8, 16, 32]
costs: list[tuple[float, float]] = []
for count in counts:
    seconds = []
    for _ in range(20):
        several = register.look_up(CHANCE.sample(present, count))
        # Keys of a request share its time at the server; 16 fit into one.
        requests = -(-count // blindfuse.QUERIES_PER_REQUEST)
        seconds.append(requests * several[0].server_seconds + sum(
            answer.total_seconds - answer.server_seconds for answer in several))
    sent = sum(answer.query_bytes + answer.response_bytes for answer in several)
    costs.append((min(seconds) / count * 1e3, sent / count / 1e3))  # other work of this machine is not a cost
    print(f"{count:2} keys: {costs[-1][0]:.2f} ms and {costs[-1][1]:.2f} kB a key")


# %% The same for asyncio: what is awaited together is asked together
async def many() -> None:
    async with blindfuse.aconnect(server.url, cache=FOLDER / "cache", progress=False) as words:
        found = await asyncio.gather(*(words.aget(code) for code in present[:16]))
        print(f"{sum(value is not None for value in found)} of {len(found)} found")


asyncio.run(many())  # in a notebook: await many()

# %% A picture
BLUE, ORANGE, GRAY = "#3b82c4", "#d9822b", "#808080"
plt.rcParams.update({
    "axes.edgecolor": GRAY, "axes.labelcolor": GRAY, "axes.titlecolor": GRAY, "text.color": GRAY, "xtick.color": GRAY,
    "ytick.color": GRAY, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "font.size": 10,
    "svg.hashsalt": "blindfuse", "figure.constrained_layout.use": True, "svg.fonttype": "path"})
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))

times = {group: [answer.server_seconds * 1e3 for answer in several] for group, several in answers.items()}
typical = statistics.median(time for several in times.values() for time in several)
left.hist(list(times.values()), bins=24, range=(0, 3 * typical), color=[BLUE, ORANGE], label=list(times))
left.set_title("What can be seen of a look-up: its time")
left.set_xlabel("waiting for the server, ms")
left.set_ylabel("look-ups")
left.legend()

right.plot(counts, [milliseconds for milliseconds, _ in costs], "o-", color=BLUE)
right.set_xscale("log", base=2)
right.set_xticks(counts, [str(count) for count in counts])
right.set_ylim(bottom=0)
right.set_title("Many keys in one call")
right.set_xlabel("keys")
right.set_ylabel("ms a key")

# No background and gray letters: for light pages and dark ones.
figure.savefig(pathlib.Path(__file__).with_suffix(".svg"), transparent=True, metadata={"Date": None})

# %% The end
register.close()
server.stop()
