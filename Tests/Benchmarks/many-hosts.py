#!/usr/bin/env python3
"""Times many small downloads from many hosts, half of which are dead, against the live half alone.

  many-hosts.py [--hosts N] [--jobs N] [--running N] [--black N] [--rounds N]

Each host is an address of loopback: live ones are served by one nginx, dead ones refuse connections, and `--black` of
the dead ones drop them (a listener whose queue is full). All jobs are queued in random order before the daemon starts.
Printed are the seconds until all of the live half is completed, alone and beside the dead half, their ratio, the
daemon's processor time, and how many attempts the dead half has cost.
"""
import argparse, os, random, socket, subprocess, sqlite3, time
import lab

parser = argparse.ArgumentParser()
parser.add_argument("--hosts", type=int, default=1_000)
parser.add_argument("--jobs", type=int, default=10, help="of each host")
parser.add_argument("--running", type=int, default=16)
parser.add_argument("--black", type=int, default=0)
parser.add_argument("--rounds", type=int, default=1)
parser.add_argument("--size", type=int, default=4_096)
options = parser.parse_args()
folder = lab.scratch()
port = socket.create_server(("127.0.0.1", 0)).getsockname()[1]
os.makedirs(folder + "/root")
with open(folder + "/root/file", "wb") as file:
    file.write(os.urandom(options.size))
with open(folder + "/nginx.conf", "w") as file:
    file.write(f"""
worker_processes 1; daemon off; user root; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/c;
    server {{ listen 0.0.0.0:{port}; root {folder}/root; rewrite ^ /file break; }}
}}
""")
nginx = subprocess.Popen(["nginx", "-c", folder + "/nginx.conf", "-e", folder + "/error.log"])
refusing = socket.socket()
refusing.bind(("127.0.0.1", 0))  # bound and not listening: nobody else takes the port, and it refuses
hole = socket.socket()
hole.bind(("0.0.0.0", 0))
hole.listen(0)
fillers = []
for _ in range(4):
    filler = socket.socket()
    filler.setblocking(False)
    filler.connect_ex(("127.0.0.1", hole.getsockname()[1]))
    fillers.append(filler)
half = options.hosts // 2


def address(network, number):
    return f"127.{network}.{number // 250}.{number % 250 + 1}"


def urls(live):
    if live:
        hosts = [f"{address(1, n)}:{port}" for n in range(half)]
    else:
        hosts = [f"{address(2, n)}:{hole.getsockname()[1] if n < options.black else refusing.getsockname()[1]}"
                 for n in range(half)]
    return [f"http://{host}/{'live' if live else 'dead'}-{n}-{j}" for n, host in enumerate(hosts)
            for j in range(options.jobs)]


def processor_time(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(number, withDead):
    place = f"{folder}/{'both' if withDead else 'alone'}-{number}"
    queue = lab.Queue(place + "/s", place + "/h")
    queue.configure(f"{{ limits: {{ running: {options.running} }} }}")
    jobs = urls(True) + (urls(False) if withDead else [])
    random.shuffle(jobs)
    os.makedirs(place + "/out")
    for at in range(0, len(jobs), 1_000):
        queue.run("add", "-q", "-d", place + "/out", *jobs[at:at + 1_000])
    while queue.serving():  # the service that took them in ends by itself, unless it is asked too often
        time.sleep(2)
    wanted = half * options.jobs
    begun = time.monotonic()
    try:
        queue.start()
        while True:
            done = sum(1 for name in os.scandir(place + "/out") if name.name.startswith("live"))
            seconds = time.monotonic() - begun
            if done >= wanted or seconds > 1_800:
                break
            time.sleep(0.1)
        cpu = processor_time(queue.daemon.pid)
        counts = queue.run("list", "--limit", "1").splitlines()[-1]
    finally:
        queue.kill(lab.signal.SIGTERM)
    database = next(n for n in os.listdir(place + "/s") if n.endswith((".db", ".sqlite")))
    attempts = sqlite3.connect(f"{place}/s/{database}").execute(
        "SELECT count(*) FROM attempt JOIN job ON job.id = job WHERE job.url LIKE '%/dead-%'").fetchone()[0]
    print(f"{'with the dead half' if withDead else 'alone':20} {seconds:7.1f} s, {wanted / seconds:6.0f} jobs/s, "
          f"processor {cpu:5.1f} s, attempts at dead hosts {attempts}; {counts}", flush=True)
    return seconds


try:
    for number in range(options.rounds):
        alone = run(number, False)
        both = run(number, True)
        print(f"ratio {both / alone:.2f}", flush=True)
finally:
    nginx.terminate()
    nginx.wait()
    lab.shutil.rmtree(folder)
