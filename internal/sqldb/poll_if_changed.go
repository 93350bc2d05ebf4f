package sqldb

import (
	"os"
	"time"
)

const (
	// watchInterval is the longest time for which a ChangeWatch trusts the files.
	watchInterval = 10 * time.Second
	// unsettledTime is the time for which a file that was just written may be written again
	// without another modification time: file systems count in ticks of the kernel.
	unsettledTime = 100 * time.Millisecond
)

// ChangeWatch tells a reader that polls whether the database may have changed since its last
// read, so that polls of an idle SQLite cost two calls of stat(2). With PostgreSQL it always may.
// It is for one goroutine.
type ChangeWatch struct {
	db     *DB
	files  [2]fileVersion // of the last read
	readAt time.Time      // zero: not read, or the files were being written
}

// fileVersion changes with every commit: each is written to the write-ahead log, and a
// checkpoint to the database.
type fileVersion struct {
	size       int64
	modifiedAt time.Time
}

// WatchChanges returns a watch whose first Poll reads.
func (db *DB) WatchChanges() *ChangeWatch { return &ChangeWatch{db: db} }

// Poll calls read, unless no commit of any process has followed the last call that returned nil.
// It returns the error of read.
func (w *ChangeWatch) Poll(read func() error) error {
	now := time.Now()
	// Before read: a commit during it changes the files once more, and the next Poll reads.
	files, settled := w.db.fileVersions(now)
	unchanged := settled && files == w.files && now.Sub(w.readAt) < watchInterval
	if unchanged {
		return nil
	}

	err := read()
	w.files, w.readAt = files, now
	if err != nil || !settled {
		w.readAt = time.Time{}
	}

	return err
}

// Distrust makes the next Poll read: what was read may be of interest again without a commit.
func (w *ChangeWatch) Distrust() { w.readAt = time.Time{} }

// fileVersions returns the versions of SQLite's database and write-ahead log, and whether each
// further commit shows in them.
func (db *DB) fileVersions(now time.Time) (versions [2]fileVersion, settled bool) {
	if db.path == "" {
		return versions, false
	}

	for i, path := range [2]string{db.path, db.path + "-wal"} {
		info, err := os.Stat(path)
		if err != nil {
			return versions, false
		}

		versions[i] = fileVersion{info.Size(), info.ModTime()}
		if now.Sub(info.ModTime()) < unsettledTime {
			return versions, false
		}
	}

	return versions, true
}
