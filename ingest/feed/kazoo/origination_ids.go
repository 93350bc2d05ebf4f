package kazoo

import "sync"

// originationIDs has the origination ids of the newest calls with one, at most 2*maxOriginations.
type originationIDs struct {
	mu           sync.Mutex
	newer, older map[string]string // origination ids by call id, in two generations
}

const maxOriginations = 10_000

func (o *originationIDs) put(call, origination string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.newer == nil || len(o.newer) >= maxOriginations {
		o.newer, o.older = make(map[string]string), o.newer
	}
	o.newer[call] = origination
}

func (o *originationIDs) find(call string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if id, ok := o.newer[call]; ok {
		return id
	}
	return o.older[call]
}
