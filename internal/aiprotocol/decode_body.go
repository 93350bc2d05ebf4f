package aiprotocol

import (
	"encoding/base64"
	"strconv"
	"time"

	"trunkline/internal/jsonscan"
)

// bodyKeys has the members of all messages' objects; bodyValues has their values in one of them.
var bodyKeys = jsonscan.KeysOf("payload", "callId", "otherLegCallId", "callerIdNumber", "calleeIdNumber", "accountId",
	"mediaFormat",
	"encoding", "sampleRate", "digit", "duration", "reason", "name", "playedMs", "droppedMs", "destination", "error",
	"event", "message",
	"text", "final", "track", "startMs", "endMs")

type bodyValues [24]jsonscan.Value

// maxTextBytes is the largest length of a text field in bytes, far above that of any number, name or
// reason.
const maxTextBytes = 1024

// maxTranscriptBytes is the largest length of a transcript's text in bytes.
const maxTranscriptBytes = 16 << 10

// maxDuration is the largest duration in a message.
const maxDuration = 24 * time.Hour

// text decodes a string. An optional string that is absent is "".
func (v *bodyValues) text(event Event, name string, required bool) (string, error) {
	return v.boundedText(event, name, required, maxTextBytes)
}

// boundedText is text with another bound, in bytes.
func (v *bodyValues) boundedText(event Event, name string, required bool, bound int) (string, error) {
	value := v[bodyKeys[name]]
	if value == nil && !required {
		return "", nil
	}

	text, ok := value.Text()
	if !ok {
		return "", NewError(ProblemField, "%s.%s is missing, or no string", event, name)
	}
	if len(text) > bound {
		return "", NewError(ProblemField, "%s.%s has more than %d bytes", event, name, bound)
	}

	return string(text), nil
}

// requiredTexts decodes required strings.
func (v *bodyValues) requiredTexts(event Event, targets map[string]*string) error {
	for name, target := range targets {
		text, err := v.text(event, name, true)
		if err != nil {
			return err
		}
		*target = text
	}
	return nil
}

// milliseconds decodes a number of milliseconds. An optional number that is absent is 0.
func (v *bodyValues) milliseconds(event Event, name string, required bool) (time.Duration, error) {
	value := v[bodyKeys[name]]
	if value == nil && !required {
		return 0, nil
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if value.Kind() != jsonscan.Number || err != nil || n < 0 || n > float64(maxDuration.Milliseconds()) {
		return 0, NewError(ProblemField, "%s.%s is missing, or no number of milliseconds", event, name)
	}
	return time.Duration(n * float64(time.Millisecond)), nil
}

func (d *Decoder) readNothing() error { return nil }

func (d *Decoder) readMedia() error {
	payload, ok := d.body[bodyKeys["payload"]].Text()
	if !ok {
		return NewError(ProblemField, "media.payload is missing, or no string")
	}

	encoding := base64.StdEncoding
	switch {
	case d.Strict:
		encoding = encoding.Strict()
	case len(payload)%4 != 0: // unpadded base64
		encoding = base64.RawStdEncoding
	}

	need := encoding.DecodedLen(len(payload))
	if cap(d.audio) < need {
		d.audio = make([]byte, need)
	}

	n, err := encoding.Decode(d.audio[:cap(d.audio)], payload)
	if err != nil {
		return NewError(ProblemBase64, "media.payload is not base64")
	}

	d.message.Audio = d.audio[:n]
	return nil
}

// readTrackMedia reads audio to a provider, which has a track if the provider listens.
func (d *Decoder) readTrackMedia() error {
	track, err := d.body.text(EventMedia, "track", false)
	if err != nil {
		return err
	}

	if track != "" {
		d.message.Track, err = trackOf(track)
		if err != nil {
			return err
		}
	}

	return d.readMedia()
}

// trackOf returns a track by its name, or by that of Twilio's Media Streams.
func trackOf(name string) (Track, error) {
	switch name {
	case string(TrackCaller), "inbound":
		return TrackCaller, nil
	case string(TrackCallee), "outbound":
		return TrackCallee, nil
	}
	return "", NewError(ProblemField, "track is neither %s nor %s", TrackCaller, TrackCallee)
}

func (d *Decoder) readTranscript() (err error) {
	t := &d.message.Transcript
	t.Text, err = d.body.boundedText(EventTranscript, "text", true, maxTranscriptBytes)
	if err != nil {
		return err
	}

	final := d.body[bodyKeys["final"]]
	if t.Text == "" || final.Kind() != jsonscan.Bool {
		return NewError(ProblemField, "transcript.text is empty, or transcript.final is missing, or no boolean")
	}

	t.Final = string(final) == "true"

	track, err := d.body.text(EventTranscript, "track", true)
	if err != nil {
		return err
	}

	t.Track, err = trackOf(track)
	if err != nil {
		return err
	}

	t.Start, err = d.body.milliseconds(EventTranscript, "startMs", true)
	if err != nil {
		return err
	}

	t.End, err = d.body.milliseconds(EventTranscript, "endMs", true)
	return err
}

func (d *Decoder) readStart() error {
	s := &d.message.Start
	err := d.body.requiredTexts(EventStart, map[string]*string{
		"callId": &s.CallID, "otherLegCallId": &s.OtherLegCallID, "accountId": &s.AccountID,
		"callerIdNumber": &s.CallerIDNumber, "calleeIdNumber": &s.CalleeIDNumber,
	})
	if err != nil {
		return err
	}

	format := d.body[bodyKeys["mediaFormat"]]
	var members bodyValues
	if format.Kind() != jsonscan.Object || bodyKeys.Scan(format, members[:]) != nil {
		return NewError(ProblemField, "start.mediaFormat is missing, or no object")
	}

	if d.Strict {
		if err := checkOnlyMembers(format, "start.mediaFormat", []string{"encoding", "sampleRate"}); err != nil {
			return err
		}
	}

	encoding, _ := members[bodyKeys["encoding"]].Text()
	rate, err := strconv.ParseFloat(string(members[bodyKeys["sampleRate"]]), 64)
	var known bool
	s.Media, known = FormatOf(string(encoding))
	// Each encoding has one rate: the message has it too, and must not contradict itself.
	if !known || err != nil || rate != float64(s.Media.SampleRate) {
		return NewError(ProblemField, "start.mediaFormat is not a supported format")
	}

	return nil
}

func (d *Decoder) readCall(event Event, call *Call) error {
	return d.body.requiredTexts(event,
		map[string]*string{"callId": &call.CallID, "otherLegCallId": &call.OtherLegCallID})
}

func (d *Decoder) readDTMF() error {
	if err := d.readCall(EventDTMF, &d.message.DTMF.Call); err != nil {
		return err
	}
	return d.readDigit()
}

func (d *Decoder) readDigit() (err error) {
	press := &d.message.DTMF
	press.Digit, err = d.body.text(EventDTMF, "digit", true)
	if err != nil {
		return err
	}

	if !IsDigit(press.Digit) {
		return NewError(ProblemField, "dtmf.digit is none of %s", Digits)
	}

	press.Duration, err = d.body.milliseconds(EventDTMF, "duration", false)
	return err
}

func (d *Decoder) readHangup() error {
	if err := d.readCall(EventHangup, &d.message.Hangup.Call); err != nil {
		return err
	}
	return d.readHangupRequest()
}

func (d *Decoder) readHangupRequest() (err error) {
	d.message.Hangup.Reason, err = d.body.text(EventHangup, "reason", false)
	return err
}

func (d *Decoder) readMark() (err error) {
	if err := d.readMarkRequest(); err != nil {
		return err
	}
	d.message.Mark.Played, err = d.body.milliseconds(EventMark, "playedMs", true)
	return err
}

func (d *Decoder) readMarkRequest() (err error) {
	d.message.Mark.Name, err = d.body.text(EventMark, "name", true)
	return err
}

func (d *Decoder) readCleared() (err error) {
	c := &d.message.Cleared
	c.Played, err = d.body.milliseconds(EventCleared, "playedMs", true)
	if err != nil {
		return err
	}
	c.Dropped, err = d.body.milliseconds(EventCleared, "droppedMs", true)
	return err
}

func (d *Decoder) readTransferRefused() (err error) {
	if err := d.readTransfer(); err != nil {
		return err
	}
	d.message.Refusal, err = d.body.text(EventTransfer, "error", true)
	return err
}

func (d *Decoder) readError() (err error) {
	refused, err := d.body.text(EventError, "event", true)
	if err != nil {
		return err
	}
	d.message.Refused = Event(refused)
	d.message.Refusal, err = d.body.text(EventError, "message", true)
	return err
}

func (d *Decoder) readTransfer() (err error) {
	d.message.Destination, err = d.body.text(EventTransfer, "destination", true)
	if err == nil && d.message.Destination == "" {
		return NewError(ProblemField, "transfer.destination is empty")
	}
	return err
}
