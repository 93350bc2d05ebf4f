package snapshot

import (
	"container/list"

	"trunkline/event"
)

// recencyMap keeps entries ordered by their last message, bounded per account,
// and counts their memory.
type recencyMap[V any] struct {
	perAccount int
	memory     *memory
	entries    map[Key]*entry[V]
	order      *list.List            // of *entry[V], oldest message first
	accounts   map[string]*list.List // the same, of one account each
}

type entry[V any] struct {
	key               Key
	lastMessage       event.ID
	text              int // bytes of strings in value beside the key
	value             V
	inAll, perAccount *list.Element
}

func newRecencyMap[V any](perAccount int, m *memory) recencyMap[V] {
	return recencyMap[V]{perAccount: max(1, perAccount), memory: m,
		entries: make(map[Key]*entry[V]), order: list.New(), accounts: make(map[string]*list.List)}
}

// touch finds or creates the entry and makes it the newest. At the account's
// bound it drops the oldest.
func (l *recencyMap[V]) touch(key Key, id event.ID) (value *V, fresh bool, dropped int) {
	if e := l.entries[key]; e != nil {
		e.lastMessage = id
		l.order.MoveToBack(e.inAll)
		l.accounts[key.Account].MoveToBack(e.perAccount)
		return &e.value, false, 0
	}
	if own := l.accounts[key.Account]; own != nil && own.Len() == l.perAccount {
		l.drop(own.Front())
		dropped++
	}
	own := l.accounts[key.Account]
	if own == nil {
		own = list.New()
		l.accounts[key.Account] = own
		l.memory.used += accountBytes
	}
	l.memory.used += key.bytes()
	e := &entry[V]{key: key, lastMessage: id}
	e.inAll, e.perAccount = l.order.PushBack(e), own.PushBack(e)
	l.entries[key] = e
	return &e.value, true, dropped
}

func (l *recencyMap[V]) remove(key Key) {
	e := l.entries[key]
	if e == nil {
		return
	}
	delete(l.entries, key)
	l.memory.used -= key.bytes() + int64(e.text)
	l.order.Remove(e.inAll)
	own := l.accounts[key.Account]
	if own.Remove(e.perAccount); own.Len() == 0 {
		delete(l.accounts, key.Account)
		l.memory.used -= accountBytes
	}
}

// bytes is the memory of an entry with the key, beside its value's text.
func (k Key) bytes() int64 { return int64(entryBytes + len(k.Account) + len(k.ID)) }

func (l *recencyMap[V]) resize(key Key, text int) {
	e := l.entries[key]
	l.memory.used += int64(text - e.text)
	e.text = text
}

func (l *recencyMap[V]) oldest() *entry[V] {
	if at := l.order.Front(); at != nil {
		return at.Value.(*entry[V])
	}
	return nil
}

func (l *recencyMap[V]) drop(at *list.Element) { l.remove(at.Value.(*entry[V]).key) }

// expire removes entries whose last message is before oldest.
func (l *recencyMap[V]) expire(oldest event.ID) {
	for at := l.order.Front(); at != nil && at.Value.(*entry[V]).lastMessage < oldest; at = l.order.Front() {
		l.drop(at)
	}
}

// each calls give for the entries of admitted accounts whose last message is at
// or after oldest.
func (l *recencyMap[V]) each(admits func(account string) bool, oldest event.ID, give func(*entry[V])) {
	for account, own := range l.accounts {
		if !admits(account) {
			continue
		}
		for at := own.Back(); at != nil; at = at.Prev() {
			e := at.Value.(*entry[V])
			if e.lastMessage < oldest {
				break
			}
			give(e)
		}
	}
}
