// Package registry lists all sources and finds the format of a record: by the
// name in its format header, or by its keys.
package registry

import (
	"sort"

	"trunkline/format"
	"trunkline/format/freeswitch"
	"trunkline/format/generic"
	"trunkline/format/kazoo"
	"trunkline/format/own"
	"trunkline/format/svc"
	"trunkline/internal/jsonscan"
)

// sources are all there are. Order decides between sources that are equally
// sure of a record.
var sources = []*format.Source{&freeswitch.Source, &kazoo.Source, &svc.Source, &generic.Source, &own.Source}

var formats, byName = func() ([]*format.Format, map[string]*format.Format) {
	var all []*format.Format
	names := make(map[string]*format.Format)
	for _, s := range sources {
		for _, f := range s.Formats {
			all = append(all, f)
			names[f.Name] = f
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, names
}()

// Formats returns all formats, sorted by name.
func Formats() []*format.Format { return append([]*format.Format(nil), formats...) }

// Lookup returns the format of that name.
func Lookup(name string) (f *format.Format, ok bool) {
	f, ok = byName[name]
	return f, ok
}

// accountKeys are the two keys under which a record of no known format may name
// its account.
var accountKeys = [...]string{"Account-ID", "account_id"}

var topLevelKeys = func() jsonscan.Keys {
	keys := make(jsonscan.Keys)
	add := func(names ...string) {
		for _, name := range names {
			if _, ok := keys[name]; !ok {
				keys[name] = len(keys)
			}
		}
	}
	add(accountKeys[:]...)
	for _, s := range sources {
		add(s.RecogniseKeys...)
	}
	return keys
}()

// Recognise returns the format of a record without a format header, by its keys.
// It is nil when they tell none; account is then the one the record names. The
// error is a *format.Rejection.
func Recognise(topic string, record []byte) (f *format.Format, account string, err error) {
	top, err := format.ScanTopLevel(record, topLevelKeys)
	if err != nil {
		return nil, "", err
	}
	best := format.Unlikely
	for _, s := range sources {
		if s.Recognise == nil {
			continue
		}
		found, confidence, err := s.Recognise(topic, &top)
		if err != nil {
			return nil, "", err
		}
		if confidence > best {
			f, best = found, confidence
		}
		if best == format.Sure {
			break
		}
	}
	return f, format.FirstText(top.Get(accountKeys[0]), top.Get(accountKeys[1])), nil
}
