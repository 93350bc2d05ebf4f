package audit

import (
	"context"
	"fmt"

	"trunkline/internal/sqldb"
)

// Verified describes a chain without changes.
type Verified struct {
	First, Last int64  // numbers of its entries; Last is First-1 when there are none
	Hash        string // of the last: the head of the chain
	Pending     int    // entries that are not in the chain yet
}

// BrokenError reports the first entry that was changed or is missing.
type BrokenError struct {
	Seq     int64
	ID      string // "" of a missing one
	Missing bool
}

func (b *BrokenError) Error() string {
	if b.Missing {
		return fmt.Sprintf("entry %d is missing", b.Seq)
	}
	return fmt.Sprintf("entry %d (id %s) was changed", b.Seq, b.ID)
}

// Known is an earlier head of the chain, kept outside of the database.
type Known struct {
	Seq  int64
	Hash string
}

const verifyBatch = 2000

// Verify reads the whole chain and checks every hash. It returns a *BrokenError for the
// first entry that was changed, or that differs from known (zero: not compared). It
// checks the entries up to the head at its start; entries can be added meanwhile.
func (l *Log) Verify(ctx context.Context, known Known, progress func(done, total int)) (Verified, error) {
	end, err := l.head(ctx)
	if err != nil {
		return Verified{}, err
	}
	at := end.pruned()
	v := Verified{First: at.seq + 1, Last: end.seq, Hash: end.hash}
	for at.seq < end.seq {
		batch, err := l.after(ctx, at.seq, verifyBatch)
		if err != nil {
			return Verified{}, err
		}
		if len(batch) == 0 || batch[0].Seq != at.seq+1 {
			// Retention may have deleted it meanwhile.
			now, err := l.head(ctx)
			if err != nil {
				return Verified{}, err
			}
			if now.prunedSeq > at.seq {
				at = now.pruned()
				v.First = at.seq + 1
				continue
			}
		}
		for i := range batch {
			if at.seq == end.seq {
				break
			}
			if err := batch[i].follows(&at, known); err != nil {
				return Verified{}, err
			}
		}
		if len(batch) < verifyBatch && at.seq < end.seq {
			return Verified{}, &BrokenError{Seq: at.seq + 1, Missing: true}
		}
		progress(int(at.seq-v.First+1), int(end.seq-v.First+1))
	}
	if at.hash != end.hash {
		return Verified{}, &BrokenError{Seq: at.seq, ID: at.id}
	}
	if known.Seq > end.seq {
		return Verified{}, &BrokenError{Seq: end.seq + 1, Missing: true}
	}
	err = l.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM audit_pending`).Scan(&v.Pending)
	return v, sqldb.Wrap(err, "counting pending audit entries")
}

// link is the entry of the chain before the next one to check.
type link struct {
	seq  int64
	hash string
	id   string // "" of one that retention deleted
}

func (h *head) pruned() link { return link{seq: h.prunedSeq, hash: h.prunedHash} }

// follows checks that c is the entry after at, and moves at to it.
func (c *Chained) follows(at *link, known Known) error {
	switch {
	case c.Seq != at.seq+1:
		return &BrokenError{Seq: at.seq + 1, Missing: true}
	case c.Prev != at.hash && at.seq > 0 && c.sum() == c.Hash:
		// c is whole and names another entry before it: that one was replaced,
		// with its hash.
		return &BrokenError{Seq: at.seq, ID: at.id}
	case c.Prev != at.hash, c.sum() != c.Hash, known.Seq == c.Seq && known.Hash != c.Hash:
		return &BrokenError{Seq: c.Seq, ID: c.ID}
	}
	*at = link{c.Seq, c.Hash, c.ID}
	return nil
}
