package freeswitch

import (
	"testing"

	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/setting"
)

// A call of a queue is heard by its caller's leg, both voices as one stream, by the operator's command.
func TestAProviderHearsTheCallersLeg(t *testing.T) {
	const member, leg = "2f1a3c5e-0000-4000-8000-000000000001", "2f1a3c5e-0000-4000-8000-000000000002"
	const by = "uuid_audio_stream {call} start wss://t.example.com/media/v1/{provider}?token=KEY stereo 16k {metadata}"
	const sent = "uuid_audio_stream " + leg + " start wss://t.example.com/media/v1/p1?token=KEY stereo 16k " +
		`{"callId":"` + leg + `","callerIdNumber":"+4930123456","channels":2,"otherLegCallId":"` + member +
		`","sampleRate":16000,"sessionId":"5f0e"}`

	for name, c := range map[string]struct {
		by, answer string
		beep       bool
		want       fault.Kind
	}{
		"taken":      {by, "+OK Success\n", false, ""},
		"after beep": {by, "+OK Success\n", true, ""},
		"refused":    {by, "-ERR Operation Failed\n", false, fault.KindRefused},
		"no command": {"", "+OK Success\n", false, fault.KindConflict},
	} {
		sw := (&fakeSwitch{answers: map[string]string{
			"uuid_exists " + member: "false", sent: c.answer,
			"uuid_broadcast " + leg + " " + beep + " both": "+OK Message sent\n",
			"callcenter_config queue list members sales@x": "queue|instance_id|uuid|session_uuid|cid_number|cid_name|state\nsales@x|single_box|" +
				member + "|" + leg + "|1|Eve|Answered\n+OK\n",
		}}).serve(t)
		s := openSession(t,
			sw.newPlatform(t, feed.Config{ListenBy: setting.Secret(c.by), ListenBeep: c.beep},
				domains{})).(feed.Commander)
		err := s.Command(t.Context(), feed.Command{Action: feed.ActionAddListener, CallID: member, QueueID: "sales@x",
			ProviderID: "p1", SessionID: "5f0e", Caller: "+4930123456"})
		asked, beeps := sw.timesReceived("api "+sent), sw.timesReceived("api uuid_broadcast "+leg+" "+beep+" both")
		if fault.KindOf(err) != c.want || (asked == 1) != (c.by != "") || (beeps == 1) != c.beep {
			t.Errorf("%s: %v, want %q; asked %d times, %d beeps", name, err, c.want, asked, beeps)
		}
	}
}
