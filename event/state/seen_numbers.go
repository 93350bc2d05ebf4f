package state

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"trunkline/event"
)

// SeenNumbers is a bitmap of numbersPerRecord consecutive numbers of a platform's run that
// were folded: the value of a record on cc.state, with which the normalizer detects
// repeated events.
type SeenNumbers struct {
	Run     string
	First   uint64   // the first of the numbers, a multiple of numbersPerRecord
	EventID event.ID // the last event that added one
	bits    [numbersPerRecord / 64]uint64
}

const (
	numbersPerRecord = 4096
	// maxNumbers bounds the records of numbers of a partition: 67 million numbers in
	// 12 MB, or 16,384 numbers in the worst case. The record without a new number for
	// the longest time is replaced first.
	maxNumbers = 1 << 14
	numbersAge = 24 * time.Hour
)

// Seen reports whether an event before id with the identity was folded, as far back as
// identities are kept.
func (p *Partition) Seen(id event.ID, i event.Identity) bool {
	n := p.entries[numbersKey(i)]
	if n == nil {
		return false
	}
	numbers := n.value.(*SeenNumbers)
	return !numbers.expired(id) && numbers.has(i.Number)
}

// foldIdentity adds the event's identity to the folded numbers.
func (p *Partition) foldIdentity(e *Event) {
	if e.Identity.Run == "" {
		return
	}

	key := numbersKey(e.Identity)
	next := &SeenNumbers{Run: e.Identity.Run, First: e.Identity.Number &^ (numbersPerRecord - 1), EventID: e.ID}
	n := p.entries[key]
	// An expired record may not be deleted yet, see maxExpirePerEvent.
	if n != nil && !n.value.(*SeenNumbers).expired(e.ID) {
		next.bits = n.value.(*SeenNumbers).bits
	}

	next.add(e.Identity.Number)
	p.set(key, next, e.ID)
	p.makeRoom(key, e.ID)
}

func (n *SeenNumbers) has(number uint64) bool {
	at := number % numbersPerRecord
	return n.bits[at/64]>>(at%64)&1 != 0
}

func (n *SeenNumbers) add(number uint64) {
	at := number % numbersPerRecord
	n.bits[at/64] |= 1 << (at % 64)
}

func (n *SeenNumbers) expired(at event.ID) bool { return n.EventID+event.ID(numbersAge) <= at }

// numbersKey returns the key of the record with the identity's number.
func numbersKey(i event.Identity) Key {
	id := make([]byte, 0, event.MaxRun+21)
	id = append(append(id, i.Run...), '/')
	return Key{Kind: Identity, ID: string(strconv.AppendUint(id, i.Number&^(numbersPerRecord-1), 10))}
}

// Key returns the key of the numbers.
func (n *SeenNumbers) Key() Key { return numbersKey(event.Identity{Run: n.Run, Number: n.First}) }

// wireNumbers is the value of the record. Bit b of byte i of Numbers stands for the
// number First + 8*i + b; trailing zero bytes are omitted.
type wireNumbers struct {
	Kind    Kind     `json:"kind"`
	Run     string   `json:"run"`
	First   uint64   `json:"first"`
	EventID event.ID `json:"event_id"`
	Numbers []byte   `json:"numbers"`
}

// Append appends the value of the record.
func (n *SeenNumbers) Append(dst []byte) []byte {
	dst = append(dst, `{"kind":"identity","run":`...)
	dst = event.AppendString(dst, n.Run)
	dst = append(dst, `,"first":`...)
	dst = strconv.AppendUint(dst, n.First, 10)
	dst = append(dst, `,"event_id":"`...)
	dst = n.EventID.Append(dst)
	dst = append(dst, `","numbers":"`...)

	var bits [numbersPerRecord / 8]byte
	end := 0
	for i, word := range n.bits {
		binary.LittleEndian.PutUint64(bits[8*i:], word)
	}

	for i, b := range bits {
		if b != 0 {
			end = i + 1
		}
	}

	return append(base64.StdEncoding.AppendEncode(dst, bits[:end]), `"}`...)
}

// parseNumbers parses the format of Append.
func parseNumbers(k Key, value []byte) (*SeenNumbers, error) {
	var w wireNumbers
	if err := json.Unmarshal(value, &w); err != nil {
		return nil, fmt.Errorf("reading numbers: %w", err)
	}

	n := &SeenNumbers{Run: w.Run, First: w.First, EventID: w.EventID}
	if w.First%numbersPerRecord != 0 || len(w.Numbers) > numbersPerRecord/8 || !(event.Identity{Run: w.Run}).Valid() ||
		n.Key() != k {
		return nil, errForeign
	}

	for i, b := range w.Numbers {
		n.bits[i/8] |= uint64(b) << (i % 8 * 8)
	}

	return n, nil
}

func (n *SeenNumbers) lastEvent() event.ID { return n.EventID }

func (n *SeenNumbers) class() lifetimeClass { return identityClass }

// estimatedSize returns an upper bound of the size of the record.
func (n *SeenNumbers) estimatedSize() int {
	const framing, members = 64, 130
	return framing + members + 2*len(n.Run) + base64.StdEncoding.EncodedLen(numbersPerRecord/8)
}
