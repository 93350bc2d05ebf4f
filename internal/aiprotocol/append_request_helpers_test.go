package aiprotocol

import (
	"strconv"

	"trunkline/event"
)

// Requests of a provider with extensions, besides audio with AppendMedia. Each function appends one
// message's JSON to dst.

// AppendTranscript appends a transcript, of a provider that listens.
func AppendTranscript(dst []byte, t Transcript) []byte {
	dst = append(dst, `{"event":"transcript","transcript":{"text":`...)
	dst = event.AppendString(dst, t.Text)
	dst = append(dst, `,"final":`...)
	dst = strconv.AppendBool(dst, t.Final)
	dst = append(dst, `,"track":`...)
	dst = event.AppendString(dst, string(t.Track))
	dst = append(dst, `,"startMs":`...)
	dst = appendMilliseconds(dst, t.Start)
	dst = append(dst, `,"endMs":`...)
	dst = appendMilliseconds(dst, t.End)

	return append(dst, `}}`...)
}

// AppendClear requests that audio that has not been played be dropped.
func AppendClear(dst []byte) []byte { return append(dst, `{"event":"clear","clear":{}}`...) }

// AppendMarkRequest requests a mark when the audio sent so far has been played.
func AppendMarkRequest(dst []byte, name string) []byte {
	dst = append(dst, `{"event":"mark","mark":{"name":`...)
	dst = event.AppendString(dst, name)
	return append(dst, `}}`...)
}

// AppendHangupRequest requests the end of the call. The reason may be "".
func AppendHangupRequest(dst []byte, reason string) []byte {
	dst = append(dst, `{"event":"hangup","hangup":{`...)
	if reason != "" {
		dst = append(dst, `"reason":`...)
		dst = event.AppendString(dst, reason)
	}
	return append(dst, `}}`...)
}

// AppendTransferRequest requests a transfer of the call.
func AppendTransferRequest(dst []byte, destination string) []byte {
	dst = append(dst, `{"event":"transfer","transfer":{"destination":`...)
	dst = event.AppendString(dst, destination)
	return append(dst, `}}`...)
}

// AppendDTMFRequest requests that a key's tone be played to the caller.
func AppendDTMFRequest(dst []byte, d DTMF) []byte {
	dst = append(dst, `{"event":"dtmf","dtmf":{`...)
	dst = d.append(dst)
	return append(dst, `}}`...)
}
