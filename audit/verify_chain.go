package audit

import (
	"context"
	"fmt"

	"trunkline/internal/sqldb"
)

// Verification is the result of Verify for an unchanged chain.
type Verification struct {
	First, Last int64  // numbers of the first and last entry; Last is First-1 if there are none
	Hash        string // of the last entry: the head of the chain
	Pending     int    // entries that are not in the chain yet

	// Unrecorded is the number up to which entries were deleted without an entry about it,
	// as versions did before there was one; 0 for none.
	Unrecorded int64
}

// PrunedError reports that a known head is among the entries that were deleted, and that
// retention does not explain it.
type PrunedError struct {
	Head, PrunedSeq int64 // numbers of the known head, and of the newest deleted entry
	Reason          string
}

func (p *PrunedError) Error() string {
	return fmt.Sprintf("entries up to %d were deleted, the head %d among them: %s", p.PrunedSeq, p.Head, p.Reason)
}

// BrokenError reports the first entry that was changed or is missing.
type BrokenError struct {
	Seq     int64
	ID      string // "" for a missing entry
	Missing bool   // else it was changed
}

func (b *BrokenError) Error() string {
	if b.Missing {
		return fmt.Sprintf("entry %d is missing", b.Seq)
	}
	return fmt.Sprintf("entry %d (id %s) was changed", b.Seq, b.ID)
}

// KnownHead is an earlier head of the chain that was stored outside of the database.
type KnownHead struct {
	Seq  int64
	Hash string
}

const verifyBatchEntries = 2000

// Verify reads the whole chain and checks every hash. It returns a *BrokenError for the
// first entry that was changed or is missing, or that differs from known (zero for no
// comparison). It returns a *PrunedError if known was deleted, unless the retention of what
// was deleted had ended. It checks the entries up to the head at its start; entries can be
// added meanwhile.
func (l *Log) Verify(ctx context.Context, known KnownHead, progress func(done, total int)) (Verification, error) {
	head, err := l.readHead(ctx)
	if err != nil {
		return Verification{}, err
	}

	previous := head.lastPruned()
	v := Verification{First: previous.seq + 1, Last: head.seq, Hash: head.hash}
	for previous.seq < head.seq {
		batch, err := l.entriesAfter(ctx, previous.seq, verifyBatchEntries)
		if err != nil {
			return Verification{}, err
		}

		if len(batch) == 0 || batch[0].Seq != previous.seq+1 {
			// Prune may have deleted the entry meanwhile.
			current, err := l.readHead(ctx)
			if err != nil {
				return Verification{}, err
			}

			if current.prunedSeq > previous.seq {
				previous = current.lastPruned()
				v.First = previous.seq + 1
				continue
			}
		}

		for i := range batch {
			if previous.seq == head.seq {
				break
			}
			if err := batch[i].checkFollows(&previous, known); err != nil {
				return Verification{}, err
			}
		}

		if len(batch) < verifyBatchEntries && previous.seq < head.seq {
			return Verification{}, &BrokenError{Seq: previous.seq + 1, Missing: true}
		}

		progress(int(previous.seq-v.First+1), int(head.seq-v.First+1))
	}

	if previous.hash != head.hash {
		return Verification{}, &BrokenError{Seq: previous.seq, ID: previous.id}
	}
	if known.Seq > head.seq {
		return Verification{}, &BrokenError{Seq: head.seq + 1, Missing: true}
	}
	if err := l.checkPruned(ctx, known, &v); err != nil {
		return Verification{}, err
	}

	err = l.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM audit_pending`).Scan(&v.Pending)
	return v, sqldb.Wrap(err, "counting pending audit entries")
}

// checkPruned checks that what is missing at the chain's beginning was deleted by Prune, and
// that a known head among it was old enough. It sets v.Unrecorded.
func (l *Log) checkPruned(ctx context.Context, known KnownHead, v *Verification) error {
	h, err := l.readHead(ctx)
	if err != nil || h.prunedSeq == 0 {
		return err
	}

	at, newest, found, err := l.findPruning(ctx, h)
	if err != nil {
		return err
	}

	if !found {
		v.Unrecorded = h.prunedSeq
	}
	if known.Seq == 0 || known.Seq > h.prunedSeq {
		return nil
	}

	reason := ""
	switch {
	case !found:
		reason = "no entry of the log says that retention ended"
	case known.Seq == h.prunedSeq && known.Hash != h.prunedHash:
		reason = "its hash was another"
	case newest.After(at.Add(-l.settings.Retention)) || at.After(l.now()):
		reason = "they were deleted before audit.retention had passed"
	default:
		return nil
	}

	return &PrunedError{Head: known.Seq, PrunedSeq: h.prunedSeq, Reason: reason}
}

// chainLink is the last entry that was checked.
type chainLink struct {
	seq  int64
	hash string
	id   string // "" for an entry that retention deleted
}

func (h *head) lastPruned() chainLink { return chainLink{seq: h.prunedSeq, hash: h.prunedHash} }

// checkFollows checks that c is the entry after previous, and sets previous to c.
func (c *ChainEntry) checkFollows(previous *chainLink, known KnownHead) error {
	switch {
	case c.Seq != previous.seq+1:
		return &BrokenError{Seq: previous.seq + 1, Missing: true}
	case c.Prev != previous.hash && previous.seq > 0 && c.computeHash() == c.Hash:
		// c is unchanged and has the hash of another previous entry: the previous entry was
		// replaced, including its hash.
		return &BrokenError{Seq: previous.seq, ID: previous.id}
	case c.Prev != previous.hash, c.computeHash() != c.Hash, known.Seq == c.Seq && known.Hash != c.Hash:
		return &BrokenError{Seq: c.Seq, ID: c.ID}
	}

	*previous = chainLink{c.Seq, c.Hash, c.ID}
	return nil
}
