package trunkline

// minRecentIDs is the minimum number of remembered ids.
const minRecentIDs = 1 << 16

// recentIDSet remembers the last ids, between size and twice size of them, in two generations, of
// which it drops the older as a whole.
type recentIDSet struct {
	size              int
	current, previous map[string]struct{}
}

func newRecentIDSet(size int) *recentIDSet {
	return &recentIDSet{size: size, current: map[string]struct{}{}}
}

// add stores id and reports whether it is new.
func (r *recentIDSet) add(id string) bool {
	_, seen := r.current[id]
	if seen {
		return false
	}

	_, seen = r.previous[id]
	if seen {
		return false
	}
	if len(r.current) == r.size {
		r.previous, r.current = r.current, make(map[string]struct{}, r.size)
	}

	r.current[id] = struct{}{}
	return true
}
