package aiprotocol

import "trunkline/event"

// What a provider that opted in may ask of the service, beside sending audio
// with AppendMedia. Each appends one message's JSON to dst.

// AppendClear asks to forget the audio that is not played yet.
func AppendClear(dst []byte) []byte { return append(dst, `{"event":"clear","clear":{}}`...) }

// AppendMarkRequest asks to be told when the audio sent so far is played.
func AppendMarkRequest(dst []byte, name string) []byte {
	dst = append(dst, `{"event":"mark","mark":{"name":`...)
	dst = event.AppendString(dst, name)
	return append(dst, `}}`...)
}

// AppendHangupRequest asks to end the call; the reason may be "".
func AppendHangupRequest(dst []byte, reason string) []byte {
	dst = append(dst, `{"event":"hangup","hangup":{`...)
	if reason != "" {
		dst = append(dst, `"reason":`...)
		dst = event.AppendString(dst, reason)
	}
	return append(dst, `}}`...)
}

// AppendTransferRequest asks to hand the call on.
func AppendTransferRequest(dst []byte, destination string) []byte {
	dst = append(dst, `{"event":"transfer","transfer":{"destination":`...)
	dst = event.AppendString(dst, destination)
	return append(dst, `}}`...)
}

// AppendDTMFRequest asks to play a key's tone to the caller.
func AppendDTMFRequest(dst []byte, d DTMF) []byte {
	dst = append(dst, `{"event":"dtmf","dtmf":{`...)
	dst = d.append(dst)
	return append(dst, `}}`...)
}
