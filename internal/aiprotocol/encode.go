package aiprotocol

import (
	"encoding/base64"
	"strconv"
	"time"

	"trunkline/event"
)

// Messages from the service to a provider. Each function appends one message's JSON to dst.

// AppendStart appends the first message of a session.
func AppendStart(dst []byte, s Start) []byte {
	dst = append(dst, `{"event":"start","start":{`...)
	dst = s.Call.append(dst)
	dst = append(dst, `,"callerIdNumber":`...)
	dst = event.AppendString(dst, s.CallerIDNumber)
	dst = append(dst, `,"calleeIdNumber":`...)
	dst = event.AppendString(dst, s.CalleeIDNumber)
	dst = append(dst, `,"accountId":`...)
	dst = event.AppendString(dst, s.AccountID)
	dst = append(dst, `,"mediaFormat":{"encoding":`...)
	dst = event.AppendString(dst, s.Media.Encoding)
	dst = append(dst, `,"sampleRate":`...)
	dst = strconv.AppendInt(dst, int64(s.Media.SampleRate), 10)

	return append(dst, `}}}`...)
}

// AppendMedia appends an audio message, which has the same form in both directions. It does not
// allocate if dst has room.
func AppendMedia(dst, audio []byte) []byte {
	dst = append(dst, `{"event":"media","media":{"payload":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, audio)
	return append(dst, `"}}`...)
}

// AppendTrackMedia appends an audio message to a provider that listens. It does not allocate if dst has
// room.
func AppendTrackMedia(dst []byte, track Track, audio []byte) []byte {
	dst = append(dst, `{"event":"media","media":{"track":"`...)
	dst = append(dst, track...)
	dst = append(dst, `","payload":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, audio)
	return append(dst, `"}}`...)
}

// AppendDTMF appends a key press of the caller.
func AppendDTMF(dst []byte, d DTMF) []byte {
	dst = append(dst, `{"event":"dtmf","dtmf":{`...)
	dst = d.Call.append(dst)
	dst = append(dst, ',')
	dst = d.append(dst)
	return append(dst, `}}`...)
}

// AppendHangup appends the last message of a session.
func AppendHangup(dst []byte, h Hangup) []byte {
	dst = append(dst, `{"event":"hangup","hangup":{`...)
	dst = h.Call.append(dst)
	if h.Reason != "" {
		dst = append(dst, `,"reason":`...)
		dst = event.AppendString(dst, h.Reason)
	}
	return append(dst, `}}`...)
}

// AppendMark appends the response to a mark (extension).
func AppendMark(dst []byte, m Mark) []byte {
	dst = append(dst, `{"event":"mark","mark":{"name":`...)
	dst = event.AppendString(dst, m.Name)
	dst = append(dst, `,"playedMs":`...)
	dst = appendMilliseconds(dst, m.Played)
	return append(dst, `}}`...)
}

// AppendCleared appends the response to a clear (extension).
func AppendCleared(dst []byte, c Cleared) []byte {
	dst = append(dst, `{"event":"cleared","cleared":{"playedMs":`...)
	dst = appendMilliseconds(dst, c.Played)
	dst = append(dst, `,"droppedMs":`...)
	dst = appendMilliseconds(dst, c.Dropped)
	return append(dst, `}}`...)
}

// AppendTransferRefused appends the response to a transfer that failed (extension). The call continues.
func AppendTransferRefused(dst []byte, destination, reason string) []byte {
	dst = append(dst, `{"event":"transfer","transfer":{"destination":`...)
	dst = event.AppendString(dst, destination)
	dst = append(dst, `,"error":`...)
	dst = event.AppendString(dst, reason)
	return append(dst, `}}`...)
}

// AppendError appends the response to another request that failed (extension). The call continues.
func AppendError(dst []byte, request Event, reason string) []byte {
	dst = append(dst, `{"event":"error","error":{"event":`...)
	dst = event.AppendString(dst, string(request))
	dst = append(dst, `,"message":`...)
	dst = event.AppendString(dst, reason)
	return append(dst, `}}`...)
}

func (c Call) append(dst []byte) []byte {
	dst = append(dst, `"callId":`...)
	dst = event.AppendString(dst, c.CallID)
	dst = append(dst, `,"otherLegCallId":`...)
	return event.AppendString(dst, c.OtherLegCallID)
}

func (d DTMF) append(dst []byte) []byte {
	dst = append(dst, `"digit":`...)
	dst = event.AppendString(dst, d.Digit)
	if d.Duration > 0 {
		dst = append(dst, `,"duration":`...)
		dst = appendMilliseconds(dst, d.Duration)
	}
	return dst
}

func appendMilliseconds(dst []byte, d time.Duration) []byte {
	return strconv.AppendInt(dst, d.Milliseconds(), 10)
}
