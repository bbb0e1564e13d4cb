/// The database's schema: an append-only list of migrations, the n-th leading to `user_version` n.
///
/// A released migration is never edited. Times are milliseconds since the epoch, sizes and offsets bytes.
enum Schema {
    /// `PRAGMA application_id`: "FRRY".
    static let applicationID: Int64 = 0x4652_5259

    /// The scripts, each run in one IMMEDIATE transaction.
    static let migrations: [String] = [version1, version2, version3]

    private static let version1 = """
        CREATE TABLE meta (
            key TEXT PRIMARY KEY,
            value TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;

        -- What the scheduler walks: small fields only.
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
            protocol TEXT,
            CHECK (phase IS NULL OR state = 'running'),
            CHECK ((wait_reason IS NOT NULL) = (state = 'waiting')),
            CHECK ((failure_reason IS NOT NULL) = (state = 'failed')),
            CHECK ((finished_at IS NOT NULL) = (state IN ('failed', 'completed', 'cancelled')))
        ) STRICT;
        CREATE INDEX job_queued ON job (host, priority DESC, id) WHERE state = 'queued';
        CREATE INDEX job_due ON job (next_try) WHERE state = 'waiting';
        CREATE INDEX job_live ON job (state, id) WHERE state NOT IN ('completed', 'cancelled');
        CREATE INDEX job_final ON job (finished_at) WHERE state IN ('completed', 'cancelled');

        -- The request as JSON, without secrets. The fingerprint is a digest of the whole URL.
        CREATE TABLE job_request (
            job INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
            request TEXT NOT NULL,
            profile TEXT,
            url_fingerprint TEXT NOT NULL,
            directory TEXT NOT NULL,
            output TEXT
        ) STRICT;
        CREATE INDEX job_request_same ON job_request (url_fingerprint, directory, output, job);

        -- What must be kept and shown nowhere: 'url', 'headers', 'proxy', …; overwritten when erased.
        CREATE TABLE secret (
            job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (job, kind)
        ) STRICT, WITHOUT ROWID;

        -- One row a generation of the partial. `remote` is JSON: validator, length, type, digests.
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

        -- Final names that are spoken for, so that two jobs never fight for one.
        CREATE TABLE reservation (
            directory TEXT NOT NULL,
            name TEXT NOT NULL,
            job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
            PRIMARY KEY (directory, name)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX reservation_job ON reservation (job);

        -- All three are offsets from the file's first byte; bytes below `durable` survive a power cut.
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

        -- `url` is redacted; a URL or id that gives access is a secret. `parts` is JSON.
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
        ) STRICT;

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

        -- The log and the outbox. No foreign key: that a job was removed is told after it is gone.
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
        CREATE INDEX event_job ON event (job, seq) WHERE job IS NOT NULL;
        CREATE INDEX event_loose ON event (time) WHERE job IS NULL OR kind = 'removed';

        -- Things to do after the fact, such as files to unlink; they outlive their job.
        CREATE TABLE cleanup (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            job INTEGER,
            kind TEXT NOT NULL,
            detail TEXT NOT NULL,
            created_at INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE host (
            host TEXT PRIMARY KEY,
            paused_until INTEGER,
            backoff_level INTEGER NOT NULL CHECK (backoff_level >= 0),
            learned TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;

        -- What was put in place; outlives the job, whose number is never given again.
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

        -- Limits that were set while running: scope 'all', 'host', 'group' or 'job', and whose.
        CREATE TABLE "limit" (
            scope TEXT NOT NULL CHECK (scope IN ('all', 'host', 'group', 'job')),
            name TEXT NOT NULL,
            key TEXT NOT NULL,
            value INTEGER,
            PRIMARY KEY (scope, name, key)
        ) STRICT, WITHOUT ROWID;

        -- A list on its way in. Its items are no jobs yet, so nothing sees them. One small commit accepts it:
        -- sets accepted_at and takes the numbers from first_job on, after which the items move to `job` in
        -- batches. One without accepted_at is removed at the next start.
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

        -- Numbers of jobs by state: of all, of each host, of each group. Kept by the triggers; no row is 0.
        CREATE TABLE counter (
            scope TEXT NOT NULL CHECK (scope IN ('all', 'host', 'group')),
            state TEXT NOT NULL,
            name TEXT NOT NULL,
            count INTEGER NOT NULL CHECK (count >= 0),
            PRIMARY KEY (scope, state, name)
        ) STRICT, WITHOUT ROWID;
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
        """

    /// What an upload protocol remembers and what the server has answered, both JSON, and where the result is.
    private static let version2 = """
        ALTER TABLE upload ADD COLUMN state TEXT;
        ALTER TABLE upload ADD COLUMN answer TEXT;
        ALTER TABLE job ADD COLUMN result_url TEXT;
        """

    /// When a job may run: its window with the time from which on it counts, and the jobs that come before it; and
    /// how often it was given a new link without getting on.
    ///
    /// `after_jobs` is what was asked for, numbers with spaces between them. A row of `dependency` is what is still
    /// to be waited for: it goes when the other job is completed, and outlives one that is forgotten.
    private static let version3 = """
        ALTER TABLE job ADD COLUMN after_jobs TEXT;
        ALTER TABLE job ADD COLUMN run_window TEXT;
        ALTER TABLE job ADD COLUMN window_from INTEGER;
        ALTER TABLE job ADD COLUMN renewals INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX job_windowed ON job (run_window, window_from)
            WHERE run_window IS NOT NULL AND state IN ('queued', 'running');
        CREATE INDEX job_auth ON job (id) WHERE wait_reason = 'auth';
        CREATE TABLE dependency (
            job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
            other INTEGER NOT NULL,
            PRIMARY KEY (job, other)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX dependency_other ON dependency (other, job);
        """
}
