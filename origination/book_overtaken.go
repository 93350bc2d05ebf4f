package origination

// keep drops the calls that are in the database, but not this node's: it was
// away for so long that another took them over.
func (b *book) keep(orderIDs []string, known map[string]bool) {
	own := make(map[string]bool, len(orderIDs))
	for _, id := range orderIDs {
		own[id] = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range known {
		if e := b.byID[id]; e != nil && !own[id] {
			b.remove(e)
		}
	}
}

// known are the calls that the database has had as this node's.
func (b *book) known() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make(map[string]bool, len(b.byID))
	for id, e := range b.byID {
		if e.stored > 0 {
			ids[id] = true
		}
	}
	return ids
}

// wasOvertaken says whether a write found another node's call since it was
// asked last.
func (b *book) wasOvertaken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.overtaken
	b.overtaken = false
	return was
}

// overtake says that it is to be asked again.
func (b *book) overtake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.overtaken = true
}
