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

// NamesMatching returns the names selected by a filter's entry: a single name, or a
// class such as "call.*". ok is false if there are none.
func NamesMatching(pattern string) (set NameSet, ok bool) {
	class, isClass := strings.CutSuffix(pattern, ".*")
	if !isClass {
		set, ok = nameBits[Name(pattern)]
		return set, ok
	}

	for n, bit := range nameBits {
		before, _, _ := strings.Cut(string(n), ".")
		if before == class {
			set |= bit
		}
	}

	return set, set != 0
}

// NamesOf returns the names selected by a filter; an empty filter selects all. It
// ignores entries without a match.
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

// NameBit returns the set of the single name in a record's header. An absent header,
// as in records without facts, and an unknown name become NameOther.
func NameBit(header []byte) NameSet {
	if bit, ok := nameBits[Name(header)]; ok {
		return bit
	}
	return nameBits[NameOther]
}
