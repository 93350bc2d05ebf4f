package event

import "strings"

// NameSet is a set of names.
type NameSet uint64

// EveryName is the set of all names.
const EveryName NameSet = 1<<len(allNames) - 1

var nameBits = func() map[Name]NameSet {
	m := make(map[Name]NameSet, len(allNames))
	for i, n := range allNames {
		m[n] = 1 << i
	}
	return m
}()

// NamesMatching returns the names that a filter's entry selects: one exactly,
// or all of a class, such as "call.*". ok is false when there is none.
func NamesMatching(pattern string) (set NameSet, ok bool) {
	class, isClass := strings.CutSuffix(pattern, ".*")
	if !isClass {
		set, ok = nameBits[Name(pattern)]
		return set, ok
	}
	for n, bit := range nameBits {
		if before, _, _ := strings.Cut(string(n), "."); before == class {
			set |= bit
		}
	}
	return set, set != 0
}

// NamesOf returns the names that a filter selects; an empty one selects all.
// Entries that match nothing are passed over.
func NamesOf(patterns []string) NameSet {
	if len(patterns) == 0 {
		return EveryName
	}
	var set NameSet
	for _, p := range patterns {
		matching, _ := NamesMatching(p)
		set |= matching
	}
	return set
}

// NameBit returns the set of one name, read from a record's header. No header,
// as in records from before there were facts, and a name that is not known are
// NameOther.
func NameBit(header []byte) NameSet {
	if bit, ok := nameBits[Name(header)]; ok {
		return bit
	}
	return nameBits[NameOther]
}
