package asterisk

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/telephony/ami"
)

// forwardedPrefixes has the prefixes of the names of events that become messages.
var forwardedPrefixes = []string{
	"QueueMember", "QueueCaller", "Agent", "Newchannel", "Newstate", "Dial", "BridgeEnter", "Hold", "Unhold", "DTMFEnd",
	"HangupRequest", "Hangup", "BlindTransfer", "AttendedTransfer", "ConfbridgeJoin", "ConfbridgeLeave",
	"ContactStatus", "PeerStatus", "ParkedCall", "UnParkedCall", "Cdr",
}

// lifecycleEvents has the names of events about Asterisk itself.
var lifecycleEvents = []string{"FullyBooted", "Shutdown", "Reload"}

// isForwarded reports whether events of the name become messages.
func isForwarded(name string) bool {
	return slices.ContainsFunc(forwardedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// appendJSON appends an event as an object, keys and values as on the wire, a repeated key as an array.
// It omits Account-ID, which is not a key of Asterisk and would select the account. An event without a Timestamp gets
// that of its reading.
func appendJSON(dst []byte, fields []ami.Field, readAt time.Time) []byte {
	dst = append(dst, '{')
	hasTimestamp := false
	for i, f := range fields {
		if f.Key == "Account-ID" ||
			slices.ContainsFunc(fields[:i], func(before ami.Field) bool { return before.Key == f.Key }) {
			continue
		}

		hasTimestamp = hasTimestamp || f.Key == "Timestamp"
		// The first field may have been left out.
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}

		dst = event.AppendString(dst, f.Key)
		dst = append(dst, ':')
		dst = appendValues(dst, fields[i:])
	}

	if !hasTimestamp {
		dst = append(dst, `,"Timestamp":"`...)
		dst = strconv.AppendInt(dst, readAt.Unix(), 10)
		dst = append(dst, '.')
		micros := strconv.Itoa(1_000_000 + readAt.Nanosecond()/1000)
		dst = append(append(dst, micros[1:]...), '"')
	}

	return append(dst, '}')
}

// appendValues appends the value of the first field, or an array of the values of all fields
// with its key.
func appendValues(dst []byte, fields []ami.Field) []byte {
	key, start, n := fields[0].Key, len(dst), 0
	for _, f := range fields {
		if f.Key != key {
			continue
		}

		n++
		if n > 1 {
			dst = append(dst, ',')
		}

		dst = event.AppendString(dst, f.Value)
	}

	if n > 1 {
		dst = append(slices.Insert(dst, start, '['), ']')
	}

	return dst
}

// knownValue returns the value of a key, "" for Asterisk's placeholders of an absent value.
func knownValue(message *ami.Message, key string) string {
	switch v := message.Get(key); v {
	case "<unknown>", "<null>", "<none>":
		return ""
	default:
		return v
	}
}

// subjects returns the ids of an event's agents, calls and devices.
func subjects(message *ami.Message) []string {
	var ids []string
	for _, key := range [...]string{"Uniqueid", "DestUniqueid", "Interface", "Agent", "Peer",
		"TransfereeUniqueid", "TransfererUniqueid", "OrigTransfererUniqueid", "ParkeeUniqueid"} {
		id := knownValue(message, key)
		if id != "" {
			ids = append(ids, id)
		}
	}

	endpoint := knownValue(message, "EndpointName")
	if endpoint != "" { // the device's id in the facts
		ids = append(ids, "PJSIP/"+endpoint)
	}

	return ids
}

// isSplit reports whether an event's channel fields end before the Linkedid, because a line break
// in a value has split it. An event may have no channel fields at all (AgentComplete of a call that has
// ended).
func isSplit(message *ami.Message) bool {
	if message.Name() == "Cdr" {
		return message.Get("UniqueID") == ""
	}
	return message.Get("ChannelState") != "" && message.Get("Linkedid") == "" ||
		message.Get("DestChannelState") != "" && message.Get("DestLinkedid") == ""
}

// repeatsKey reports whether a key that Asterisk writes once occurs twice.
func repeatsKey(message *ami.Message) bool {
	for i, f := range message.Fields {
		if !strings.Contains(f.Key, "ChanVariable") &&
			slices.ContainsFunc(message.Fields[:i], func(before ami.Field) bool { return before.Key == f.Key }) {
			return true
		}
	}
	return false
}
