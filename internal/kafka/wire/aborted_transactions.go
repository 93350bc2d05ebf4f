package wire

import (
	"cmp"
	"slices"
)

// AbortedTransaction is an aborted transaction of a fetch response; it ends with a
// marker in the log.
type AbortedTransaction struct {
	Producer    int64 // producer id
	FirstOffset int64
}

// abortedTransactions tracks which batches belong to aborted transactions.
type abortedTransactions struct {
	pending       []AbortedTransaction // ordered by first offset
	openProducers map[int64]bool       // by producer id
}

// SetAborted sets the aborted transactions of a new response.
func (d *Decoder) SetAborted(list []AbortedTransaction) {
	slices.SortFunc(list, func(a, b AbortedTransaction) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	d.aborted = abortedTransactions{pending: list}
}

// skips reports whether the batch has no records to return, since it is a transaction
// marker or part of an aborted transaction.
func (a *abortedTransactions) skips(h *batchHeader, content []byte) (bool, error) {
	// A producer has one transaction at a time: from its first offset on all its batches are of the aborted one.
	for len(a.pending) > 0 && a.pending[0].FirstOffset <= h.lastOffset {
		if a.openProducers == nil {
			a.openProducers = map[int64]bool{}
		}
		a.openProducers[a.pending[0].Producer] = true
		a.pending = a.pending[1:]
	}

	if h.attributes&attrControl != 0 {
		r := FieldReader{B: content}
		r.varlen() // record length
		r.Int8()
		r.varint() // time
		r.varint() // offset
		key := FieldReader{B: r.varbytes()}
		key.Int16() // version
		const abort = 0
		kind := key.Int16()
		if kind == abort && !r.Bad && !key.Bad {
			delete(a.openProducers, h.producerID)
		}

		return true, nil
	}

	return h.attributes&attrTransactional != 0 && a.openProducers[h.producerID], nil
}
