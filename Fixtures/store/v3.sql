-- A database of schema version 3, as the release that introduced it wrote it (sqlite3 jobs.db .dump).
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('clean','1');
CREATE TABLE job (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('download', 'upload')),
    state TEXT NOT NULL CHECK (state IN
        ('queued', 'running', 'waiting', 'paused', 'failed', 'completed', 'cancelled')),
    phase TEXT CHECK (phase IN ('connecting', 'transferring', 'verifying', 'finishing')),
    wait_reason TEXT CHECK (wait_reason IN
        ('retry', 'host', 'network', 'schedule', 'disk', 'auth')),
    failure_reason TEXT CHECK (failure_reason IN
        ('not-found', 'forbidden', 'unauthorized', 'link-expired', 'changed', 'source-changed',
        'checksum', 'too-large', 'policy', 'tls', 'bad-response', 'local-io', 'exists',
        'unsupported', 'dependency', 'gave-up', 'server')),
    message TEXT,
    advice TEXT,
    priority INTEGER NOT NULL CHECK (priority BETWEEN -100 AND 100),
    host TEXT NOT NULL,
    group_name TEXT,
    url TEXT NOT NULL,
    path TEXT,
    not_before INTEGER,
    next_try INTEGER,
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    transient_tries INTEGER NOT NULL CHECK (transient_tries >= 0),
    doubtful_tries INTEGER NOT NULL CHECK (doubtful_tries >= 0),
    forgiven_attempts INTEGER NOT NULL CHECK (forgiven_attempts >= 0),
    restarts INTEGER NOT NULL CHECK (restarts >= 0),
    mismatches INTEGER NOT NULL CHECK (mismatches >= 0),
    progress_at INTEGER,
    best_bytes INTEGER NOT NULL CHECK (best_bytes >= 0),
    bytes_total INTEGER CHECK (bytes_total >= 0),
    bytes_durable INTEGER NOT NULL CHECK (bytes_durable >= 0),
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    length_proved INTEGER CHECK (length_proved IN (0, 1)),
    http_version TEXT,
    content_encoding TEXT,
    protocol TEXT, result_url TEXT, after_jobs TEXT, run_window TEXT, window_from INTEGER, renewals INTEGER NOT NULL DEFAULT 0,
    CHECK (phase IS NULL OR state = 'running'),
    CHECK ((wait_reason IS NOT NULL) = (state = 'waiting')),
    CHECK ((failure_reason IS NOT NULL) = (state = 'failed')),
    CHECK ((finished_at IS NOT NULL) = (state IN ('failed', 'completed', 'cancelled')))
) STRICT;
INSERT INTO job VALUES(1,NULL,'download','running','transferring',NULL,NULL,NULL,NULL,0,'example.org:443','isos','https://example.org/a.iso','/data/a.iso',NULL,NULL,1,0,0,0,0,0,NULL,0,4194304,1048576,1800000000000,1800000001000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO job VALUES(2,NULL,'download','waiting',NULL,'retry',NULL,'503 from example.org',NULL,0,'example.org:443','isos','https://example.org/b.iso',NULL,NULL,1800000060000,0,0,0,0,0,0,NULL,0,NULL,0,1800000000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO job VALUES(3,NULL,'download','completed',NULL,NULL,NULL,NULL,NULL,0,'example.org:443','isos','https://example.org/c.iso',NULL,NULL,NULL,0,0,0,0,0,0,NULL,0,NULL,0,1800000000000,NULL,1800000009000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO job VALUES(5,NULL,'upload','paused',NULL,NULL,NULL,NULL,NULL,0,'up.example.org:443',NULL,'https://up.example.org/files','/data/d.iso',NULL,NULL,1,0,0,1,0,0,NULL,4096,9000,4096,1767225600000,NULL,NULL,NULL,NULL,NULL,'tus',NULL,NULL,NULL,NULL,0);
INSERT INTO job VALUES(6,NULL,'download','waiting',NULL,'schedule',NULL,'after jobs 1, 2',NULL,0,'example.org:443',NULL,'https://example.org/e.iso?key=***',NULL,NULL,NULL,0,0,0,0,0,0,NULL,0,NULL,0,1800000002000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'1 2 3','22:00-06:00 3600 1806022800:7200',NULL,0);
CREATE TABLE job_request (
    job INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
    request TEXT NOT NULL,
    profile TEXT,
    url_fingerprint TEXT NOT NULL,
    directory TEXT NOT NULL,
    output TEXT
) STRICT;
INSERT INTO job_request VALUES(1,'{"allowHTTP":false,"compressed":false,"directory":"/data","foreground":false,"group":"isos","headers":[],"kind":"download","priority":0,"proxy":{},"remoteTime":false,"umask":18,"url":"https://example.org/a.iso"}',NULL,'fingerprint of a.iso','/data',NULL);
INSERT INTO job_request VALUES(2,'{"allowHTTP":false,"compressed":false,"directory":"/data","foreground":false,"group":"isos","headers":[],"kind":"download","priority":0,"proxy":{},"remoteTime":false,"umask":18,"url":"https://example.org/b.iso"}',NULL,'fingerprint of b.iso','/data',NULL);
INSERT INTO job_request VALUES(3,'{"allowHTTP":false,"compressed":false,"directory":"/data","foreground":false,"group":"isos","headers":[],"kind":"download","priority":0,"proxy":{},"remoteTime":false,"umask":18,"url":"https://example.org/c.iso"}',NULL,'fingerprint of c.iso','/data',NULL);
INSERT INTO job_request VALUES(5,'{"allowHTTP":false,"compressed":false,"directory":"/","foreground":false,"headers":[],"kind":"upload","priority":0,"proxy":{},"remoteTime":false,"umask":18,"upload":{"body":{"file":{"path":"/data/d.iso"}},"transport":"auto"},"url":"https://up.example.org/files"}',NULL,'f5','/',NULL);
INSERT INTO job_request VALUES(6,'{"after":[1,2,3],"allowHTTP":false,"compressed":false,"directory":"/data","foreground":false,"headers":[],"kind":"download","priority":0,"proxy":{},"remoteTime":false,"renew":"/usr/local/bin/fresh","umask":18,"url":"https://example.org/e.iso?key=***","window":"22:00-06:00 3600 1806022800:7200"}',NULL,'f6','/data',NULL);
CREATE TABLE secret (
    job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (job, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO secret VALUES(1,'headers','[{"name":"Authorization","value":"Bearer s3cret"}]');
INSERT INTO secret VALUES(1,'url','https://user:word@example.org/a.iso?token=s3cret');
INSERT INTO secret VALUES(5,'upload-url','https://up.example.org/files/1?key=s3cret');
INSERT INTO secret VALUES(6,'url','https://example.org/e.iso?key=s3cret');
CREATE TABLE job_file (
    job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL CHECK (generation >= 0),
    directory TEXT NOT NULL,
    name TEXT NOT NULL,
    partial_name TEXT NOT NULL,
    device INTEGER,
    inode INTEGER,
    settled_ns INTEGER,
    remote TEXT NOT NULL,
    final_url TEXT,
    PRIMARY KEY (job, generation),
    CHECK ((device IS NULL) = (inode IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO job_file VALUES(1,1,'/data','a.iso','.a.iso.1.ferry-part',64,4711,NULL,'{"etag":"\"abc\""}','https://mirror.example.org/a.iso');
CREATE TABLE reservation (
    directory TEXT NOT NULL,
    name TEXT NOT NULL,
    job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    PRIMARY KEY (directory, name)
) STRICT, WITHOUT ROWID;
INSERT INTO reservation VALUES('/data','a.iso',1);
CREATE TABLE segment (
    job INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    start INTEGER NOT NULL CHECK (start >= 0),
    stop INTEGER,
    durable INTEGER NOT NULL,
    PRIMARY KEY (job, generation, start),
    FOREIGN KEY (job, generation) REFERENCES job_file (job, generation) ON DELETE CASCADE,
    CHECK (stop >= start),
    CHECK (durable >= start),
    CHECK (durable <= stop)
) STRICT, WITHOUT ROWID;
INSERT INTO segment VALUES(1,1,0,2097152,1048576);
INSERT INTO segment VALUES(1,1,2097152,4194304,2097152);
CREATE TABLE upload (
    job INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
    protocol TEXT NOT NULL,
    url TEXT,
    upload_offset INTEGER NOT NULL CHECK (upload_offset >= 0),
    parts TEXT,
    source_path TEXT,
    source_device INTEGER,
    source_inode INTEGER,
    source_size INTEGER CHECK (source_size >= 0),
    source_mtime_ns INTEGER,
    spool TEXT
, state TEXT, answer TEXT) STRICT;
INSERT INTO upload VALUES(5,'tus','https://up.example.org/files/1?key=***',4096,NULL,'/data/d.iso',2049,77,9000,1767225500000000000,NULL,'{"creations":1}',NULL);
CREATE TABLE attempt (
    job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    number INTEGER NOT NULL CHECK (number >= 1),
    began_at INTEGER NOT NULL,
    ended_at INTEGER,
    outcome TEXT,
    message TEXT,
    first_offset INTEGER NOT NULL CHECK (first_offset >= 0),
    received INTEGER NOT NULL CHECK (received >= 0),
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
INSERT INTO attempt VALUES(1,1,1800000001000,NULL,NULL,NULL,0,0);
CREATE TABLE hop (
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 0),
    url TEXT NOT NULL,
    status INTEGER,
    address TEXT,
    http_version TEXT,
    first_byte_ms INTEGER,
    total_ms INTEGER,
    PRIMARY KEY (job, attempt, position),
    FOREIGN KEY (job, attempt) REFERENCES attempt (job, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO hop VALUES(1,1,0,'https://example.org/a.iso',302,'192.0.2.1','1.1',12,12);
INSERT INTO hop VALUES(1,1,1,'https://mirror.example.org/a.iso',200,'192.0.2.2','1.1',30,NULL);
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    session TEXT,
    job INTEGER,
    kind TEXT NOT NULL,
    state TEXT CHECK (state IN
        ('queued', 'running', 'waiting', 'paused', 'failed', 'completed', 'cancelled')),
    reason TEXT,
    message TEXT,
    detail TEXT
) STRICT;
INSERT INTO event VALUES(1,1800000000000,NULL,1,'added','queued',NULL,NULL,NULL);
INSERT INTO event VALUES(2,1800000001000,NULL,1,'started','running',NULL,NULL,NULL);
CREATE TABLE cleanup (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job INTEGER,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
INSERT INTO cleanup VALUES(1,4,'unlink','/data/.d.iso.1.ferry-part',1800000009000);
CREATE TABLE host (
    host TEXT PRIMARY KEY,
    paused_until INTEGER,
    backoff_level INTEGER NOT NULL CHECK (backoff_level >= 0),
    learned TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO host VALUES('example.org:443',1800000060000,1,'{"ranges":true}');
CREATE TABLE published (
    path TEXT PRIMARY KEY,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL CHECK (size >= 0),
    mtime_ns INTEGER NOT NULL,
    remote TEXT NOT NULL,
    job INTEGER,
    url_fingerprint TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO published VALUES('/data/c.iso',64,4712,7,1800000000000000000,'{"etag":"\"c\""}',3,'fingerprint of c.iso');
CREATE TABLE IF NOT EXISTS "limit" (
    scope TEXT NOT NULL CHECK (scope IN ('all', 'host', 'group', 'job')),
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    value INTEGER,
    PRIMARY KEY (scope, name, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE import (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT,
    created_at INTEGER NOT NULL,
    accepted_at INTEGER,
    first_job INTEGER,
    CHECK ((accepted_at IS NULL) = (first_job IS NULL))
) STRICT;
CREATE TABLE import_item (
    import INTEGER NOT NULL REFERENCES import (id) ON DELETE CASCADE,
    number INTEGER NOT NULL CHECK (number >= 0),
    item TEXT NOT NULL,
    secret TEXT,
    PRIMARY KEY (import, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE counter (
    scope TEXT NOT NULL CHECK (scope IN ('all', 'host', 'group')),
    state TEXT NOT NULL,
    name TEXT NOT NULL,
    count INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (scope, state, name)
) STRICT, WITHOUT ROWID;
INSERT INTO counter VALUES('all','completed','',1);
INSERT INTO counter VALUES('all','paused','',1);
INSERT INTO counter VALUES('all','running','',1);
INSERT INTO counter VALUES('all','waiting','',2);
INSERT INTO counter VALUES('group','completed','isos',1);
INSERT INTO counter VALUES('group','running','isos',1);
INSERT INTO counter VALUES('group','waiting','isos',1);
INSERT INTO counter VALUES('host','completed','example.org:443',1);
INSERT INTO counter VALUES('host','paused','up.example.org:443',1);
INSERT INTO counter VALUES('host','running','example.org:443',1);
INSERT INTO counter VALUES('host','waiting','example.org:443',2);
CREATE TABLE dependency (
    job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    other INTEGER NOT NULL,
    PRIMARY KEY (job, other)
) STRICT, WITHOUT ROWID;
INSERT INTO dependency VALUES(6,1);
INSERT INTO dependency VALUES(6,2);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('job',6);
INSERT INTO sqlite_sequence VALUES('event',2);
INSERT INTO sqlite_sequence VALUES('cleanup',1);
CREATE INDEX job_queued ON job (host, priority DESC, id) WHERE state = 'queued';
CREATE INDEX job_due ON job (next_try) WHERE state = 'waiting';
CREATE INDEX job_live ON job (state, id) WHERE state NOT IN ('completed', 'cancelled');
CREATE INDEX job_final ON job (finished_at) WHERE state IN ('completed', 'cancelled');
CREATE INDEX job_request_same ON job_request (url_fingerprint, directory, output, job);
CREATE INDEX reservation_job ON reservation (job);
CREATE INDEX event_job ON event (job, seq) WHERE job IS NOT NULL;
CREATE INDEX event_loose ON event (time) WHERE job IS NULL OR kind = 'removed';
CREATE TRIGGER job_counted_in AFTER INSERT ON job BEGIN
    INSERT INTO counter VALUES ('all', NEW.state, '', 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
    INSERT INTO counter VALUES ('host', NEW.state, NEW.host, 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
    INSERT INTO counter SELECT 'group', NEW.state, NEW.group_name, 1 WHERE NEW.group_name IS NOT NULL
        ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER job_counted_out AFTER DELETE ON job BEGIN
    UPDATE counter SET count = count - 1 WHERE scope = 'all' AND state = OLD.state AND name = '';
    UPDATE counter SET count = count - 1
        WHERE scope = 'host' AND state = OLD.state AND name = OLD.host;
    UPDATE counter SET count = count - 1
        WHERE scope = 'group' AND state = OLD.state AND name = OLD.group_name;
    DELETE FROM counter WHERE scope = 'all' AND state = OLD.state AND name = '' AND count = 0;
    DELETE FROM counter
        WHERE scope = 'host' AND state = OLD.state AND name = OLD.host AND count = 0;
    DELETE FROM counter
        WHERE scope = 'group' AND state = OLD.state AND name = OLD.group_name AND count = 0;
END;
CREATE TRIGGER job_counted_over AFTER UPDATE OF state, host, group_name ON job
WHEN OLD.state IS NOT NEW.state OR OLD.host IS NOT NEW.host OR OLD.group_name IS NOT NEW.group_name
BEGIN
    UPDATE counter SET count = count - 1 WHERE scope = 'all' AND state = OLD.state AND name = '';
    UPDATE counter SET count = count - 1
        WHERE scope = 'host' AND state = OLD.state AND name = OLD.host;
    UPDATE counter SET count = count - 1
        WHERE scope = 'group' AND state = OLD.state AND name = OLD.group_name;
    INSERT INTO counter VALUES ('all', NEW.state, '', 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
    INSERT INTO counter VALUES ('host', NEW.state, NEW.host, 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
    INSERT INTO counter SELECT 'group', NEW.state, NEW.group_name, 1 WHERE NEW.group_name IS NOT NULL
        ON CONFLICT DO UPDATE SET count = count + 1;
    DELETE FROM counter WHERE scope = 'all' AND state = OLD.state AND name = '' AND count = 0;
    DELETE FROM counter
        WHERE scope = 'host' AND state = OLD.state AND name = OLD.host AND count = 0;
    DELETE FROM counter
        WHERE scope = 'group' AND state = OLD.state AND name = OLD.group_name AND count = 0;
END;
CREATE INDEX job_windowed ON job (run_window, window_from)
    WHERE run_window IS NOT NULL AND state IN ('queued', 'running');
CREATE INDEX job_auth ON job (id) WHERE wait_reason = 'auth';
CREATE INDEX dependency_other ON dependency (other, job);
COMMIT;
PRAGMA application_id=1179800153; PRAGMA user_version=3;
