package freeswitch

import (
	"bytes"
	"net/url"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// resync is the format of a live feed's corrections.
var resync = format.Resync("freeswitch.resync")

// Source lists the formats of FreeSWITCH.
var Source = format.Source{
	Formats:       []*format.Format{&callcenter, &events, &jsonCDR, &resync},
	RecogniseKeys: []string{"Core-UUID", "Event-Name", "CC-Action", "variables", "resync"},
	Recognise:     recognise,
}

const (
	seenCore = iota
	seenName
	seenAction
	seenVariables
	seenResync
)

// recognise is sure of an event only by Core-UUID or CC-Action: Kazoo's events have an
// Event-Name too.
func recognise(r *format.Unrecognised) (*format.Format, format.Confidence, error) {
	switch {
	case r.Topic == event.TopicCDRRaw:
		if r.Seen[seenVariables].Kind() == jsonscan.Object {
			return &jsonCDR, format.Sure, nil
		}
	case r.Seen[seenResync].Is("freeswitch"):
		return &resync, format.Sure, nil
	case r.Seen[seenAction] != nil:
		return &callcenter, format.Sure, nil
	case r.Seen[seenName] != nil && r.Seen[seenCore] != nil:
		return &events, format.Sure, nil
	case r.Seen[seenName] != nil:
		return &events, format.Likely, nil
	}
	return nil, format.Unlikely, nil
}

// decoded returns the text of a value, which may be URL-encoded.
func decoded(v jsonscan.Value) string {
	text, _ := v.Text()
	if bytes.IndexByte(text, '%') >= 0 {
		return unescape(string(text))
	}
	return string(text)
}

// unescape decodes URL-encoding; it returns other text unchanged.
func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}
