#ifndef FERRY_CSQLITE_SHIM_H
#define FERRY_CSQLITE_SHIM_H

#include <sqlite3.h>

#pragma clang assume_nonnull begin

/* sqlite3_db_config() for the options that take an int and give the new value back. */
static inline int ferry_sqlite_db_config(sqlite3 *db, int option, int on) {
    return sqlite3_db_config(db, option, on, (int *)0);
}

/* sqlite3_bind_text64() of UTF-8 that SQLite copies at once. */
static inline int
ferry_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 length) {
    return sqlite3_bind_text64(statement, index, text, length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

#pragma clang assume_nonnull end

#endif
