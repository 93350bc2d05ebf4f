package channelclient

// recentIDs is the least number of ids remembered: what a server may send
// again after a break lies between its last cursor, a second old, and the
// break; without cursors, in its margin of a minute.
const recentIDs = 1 << 16

// recent remembers the last ids in two generations, the older of which is
// dropped whole: between size and twice size of them.
type recent struct {
	size              int
	current, previous map[string]struct{}
}

func newRecent(size int) *recent {
	return &recent{size: size, current: make(map[string]struct{})}
}

// add stores id and reports whether it is new.
func (r *recent) add(id string) bool {
	if _, seen := r.current[id]; seen {
		return false
	}
	if _, seen := r.previous[id]; seen {
		return false
	}
	if len(r.current) == r.size {
		r.previous, r.current = r.current, make(map[string]struct{}, r.size)
	}
	r.current[id] = struct{}{}
	return true
}
