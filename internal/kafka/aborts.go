package kafka

import "sort"

// aborts tracks which batches belong to aborted transactions. A fetch response lists
// those transactions by producer and first offset; each ends with a marker in the log.
type aborts struct {
	pending []abortedTxn // ordered by first offset
	open    map[int64]bool
}

type abortedTxn struct {
	producer, first int64
}

// reset sets the list of a new response.
func (a *aborts) reset(list []abortedTxn) {
	sort.Slice(list, func(i, j int) bool { return list[i].first < list[j].first })
	a.pending, a.open = list, nil
}

// skip reports whether the batch has no records to return: it is a transaction marker
// or part of an aborted transaction.
func (a *aborts) skip(h *batchHeader, content []byte) (bool, error) {
	for len(a.pending) > 0 && a.pending[0].first <= h.last {
		if a.open == nil {
			a.open = map[int64]bool{}
		}
		a.open[a.pending[0].producer] = true
		a.pending = a.pending[1:]
	}
	if h.attributes&attrControl != 0 {
		r := wireReader{b: content}
		r.varlen() // record length
		r.int8()
		r.varint() // time
		r.varint() // offset
		key := wireReader{b: r.varbytes()}
		key.int16() // version
		const abort = 0
		if kind := key.int16(); kind == abort && !r.bad && !key.bad {
			delete(a.open, h.producer)
		}
		return true, nil
	}
	return h.attributes&attrTransactional != 0 && a.open[h.producer], nil
}
