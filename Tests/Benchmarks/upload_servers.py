"""Servers that take uploads, for the trials; each keeps what it gets below a folder.

  nginx, apache       PUT by their WebDAV modules
  resumable-upload    tus with every extension, checksums too; a program of that name (Python package)
  tussi               tus, creation only; `tussi-server` of the Python package tussi[cli]
  rufh                the IETF's resumable uploads: rufh-server.py of the tests

Programs are looked for in PATH.
"""
import os, shutil, socket, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ["nginx", "apache", "resumable-upload", "tussi", "rufh"]

NGINX = """daemon off; pid {run}/pid; error_log {run}/error.log; user root; worker_processes 1;
events {{}}
http {{ access_log off; client_body_temp_path {store}/.body; client_max_body_size 0;
  server {{ listen 127.0.0.1:{port}; location / {{ root {store}; dav_methods PUT DELETE; }} }} }}
"""
APACHE = """ServerRoot /usr/lib/apache2
{modules}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {run}/pid
ErrorLog {run}/error.log
User www-data
Group www-data
DocumentRoot {store}
DavLockDB {run}/locks
LimitRequestBody 0
<Directory {store}>
  Require all granted
  Dav On
</Directory>
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    """A server under way: `url` is where uploads go, `store` the folder in which they are found."""

    def __init__(self, name, parent):
        self.run, self.port = tempfile.mkdtemp(prefix="ferry-server-", dir=parent), free_port()
        self.store = self.run + "/store"
        os.makedirs(self.store + "/.body")
        port, store, place = str(self.port), self.store, "files/upload.bin"
        if name == "nginx":
            os.makedirs(self.store + "/files")
            command = ["nginx", "-c", self.write(NGINX), "-p", self.run]
        elif name == "apache":
            os.makedirs(self.store + "/files")
            modules = ["mpm_event", "authz_core", "dav", "dav_fs", "dir"]
            lines = "\n".join(f"LoadModule {m}_module modules/mod_{m}.so" for m in modules)
            os.chmod(parent, 0o755)  # its user has to come through
            for folder in (self.run, self.store, self.store + "/files"):
                os.chmod(folder, 0o777)
            command = ["apache2", "-f", self.write(APACHE, modules=lines), "-DFOREGROUND"]
        elif name == "resumable-upload":
            place = "files"
            command = ["resumable-upload", "serve", "--host", "127.0.0.1", "--port", port, "--upload-dir", store,
                       "--db-path", self.run + "/uploads.db"]
        elif name == "tussi":
            place = "files/"
            os.makedirs(self.store + "/done")
            command = ["tussi-server", "--host", "127.0.0.1", "--port", port, "--upload-dir", store + "/.body",
                       "--dest-dir", store + "/done"]
        elif name == "rufh":
            place = "files"
            command = [sys.executable, HERE + "/../FerryTestSupport/rufh-server.py", port, store]
        else:
            sys.exit(f"no server {name}; there are {', '.join(NAMES)}")
        if not (shutil.which(command[0]) or shutil.which(command[0], path="/usr/sbin")):
            sys.exit(f"{command[0]} is not installed")
        path = os.environ["PATH"] + ":/usr/sbin"
        self.process = subprocess.Popen(command, env=dict(os.environ, PATH=path), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, cwd="/")
        self.url = f"http://127.0.0.1:{self.port}/{place}"
        self.protocol = {"nginx": "put", "apache": "put", "rufh": "ietf"}.get(name, "tus")
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.1)
        self.stop()
        sys.exit(f"{name} does not answer; see {self.run}")

    def write(self, text, **values):
        path = self.run + "/server.conf"
        with open(path, "w") as file:
            file.write(text.format(run=self.run, port=self.port, store=self.store, **values))
        return path

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.run, ignore_errors=True)
