package channelclient

// recentIDs is how many ids are remembered at least: what a server may send
// again after a break lies between its last cursor, a second old, and the
// break; without cursors, in its margin of a minute.
const recentIDs = 1 << 16

// recent remembers the last ids in two generations, the older of which is
// dropped whole: between size and twice size of them.
type recent struct {
	size       int
	young, old map[string]struct{}
}

func newRecent(size int) *recent {
	return &recent{size: size, young: make(map[string]struct{})}
}

// add says whether id is new, and remembers it.
func (r *recent) add(id string) bool {
	if _, seen := r.young[id]; seen {
		return false
	}
	if _, seen := r.old[id]; seen {
		return false
	}
	if len(r.young) == r.size {
		r.old, r.young = r.young, make(map[string]struct{}, r.size)
	}
	r.young[id] = struct{}{}
	return true
}
