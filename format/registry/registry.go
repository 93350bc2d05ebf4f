// Package registry lists all sources and finds the format of a record: by the
// name in its format header, or by its keys.
package registry

import (
	"sort"

	"trunkline/format"
	"trunkline/format/asterisk"
	"trunkline/format/freeswitch"
	"trunkline/format/generic"
	"trunkline/format/kazoo"
	"trunkline/format/own"
	"trunkline/format/svc"
	"trunkline/internal/jsonscan"
)

// sources lists all sources. The order decides between sources with the same
// confidence.
var sources = []*format.Source{&freeswitch.Source, &asterisk.Source, &kazoo.Source, &svc.Source, &generic.Source,
	&own.Source}

var allFormats, byName = func() ([]*format.Format, map[string]*format.Format) {
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
func Formats() []*format.Format { return append([]*format.Format(nil), allFormats...) }

// Lookup returns the format of that name.
func Lookup(name string) (f *format.Format, ok bool) {
	f, ok = byName[name]
	return f, ok
}

// accountKeys are the two keys under which a record of an unknown format may name its
// account.
var accountKeys = [...]string{"Account-ID", "account_id"}

// topLevelKeys are the members that any source reads; sourceSlots has, by source, the slots of
// its RecogniseKeys among them.
var topLevelKeys, sourceSlots = func() (jsonscan.Keys, [][]int) {
	keys := make(jsonscan.Keys)
	slot := func(name string) int {
		if _, ok := keys[name]; !ok {
			keys[name] = len(keys)
		}
		return keys[name]
	}

	for _, name := range accountKeys {
		slot(name)
	}

	bySource := make([][]int, len(sources))
	for i, s := range sources {
		for _, name := range s.RecogniseKeys {
			bySource[i] = append(bySource[i], slot(name))
		}
	}

	return keys, bySource
}()

// Scratch is memory that Recognise reuses.
type Scratch struct {
	topLevel, values, fields format.Fields
	record                   format.Unrecognised
}

// Recognise returns the format of a record without a format header, by its keys. If
// they identify none, f is nil and account is the account that the record names. The
// error is a *format.Rejection.
func Recognise(topic string, record []byte, scratch *Scratch) (f *format.Format, account string, err error) {
	top := scratch.topLevel[:len(topLevelKeys)]
	clear(top)
	if err := topLevelKeys.Scan(record, top); err != nil {
		return nil, "", format.RejectScan(err)
	}

	scratch.record = format.Unrecognised{Topic: topic, Record: record, Fields: &scratch.fields}
	best := format.Unlikely
	for i, s := range sources {
		if s.Recognise == nil {
			continue
		}

		scratch.record.Values = scratch.values[:len(sourceSlots[i])]
		for n, slot := range sourceSlots[i] {
			scratch.values[n] = top[slot]
		}

		found, confidence, err := s.Recognise(&scratch.record)
		if err != nil {
			return nil, "", err
		}

		if confidence > best {
			f, best = found, confidence
		}
		if best == format.Sure {
			return f, "", nil
		}
	}

	return f, format.FirstText(top[topLevelKeys[accountKeys[0]]], top[topLevelKeys[accountKeys[1]]]), nil
}
