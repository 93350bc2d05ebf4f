package freeswitch

import (
	"errors"
	"strings"
	"testing"

	"trunkline/ingest/feed"
	"trunkline/internal/setting"
)

func TestRefusalsSayWhatToChange(t *testing.T) {
	for name, test := range map[string]struct {
		cfg     feed.Config
		allowed func(string) bool
		advice  string
	}{
		"wrong password": {feed.Config{Password: "no"}, nil, "event_socket.conf.xml"},
		"wrong user":     {feed.Config{Password: "no", User: "a@b"}, nil, "esl-password"},
		"events not permitted": {feed.Config{User: "a@b"}, func(word string) bool { return word != "CHANNEL_ANSWER" },
			"esl-allowed-events"},
	} {
		t.Run(name, func(t *testing.T) {
			p := (&fakeSwitch{allowed: test.allowed}).serve(t).newPlatform(t, test.cfg, nil)
			_, err := p.Connect(t.Context())
			var refusal *feed.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Advice, test.advice) {
				t.Fatalf("got %v, %+v", err, refusal)
			}
		})
	}
}

func TestRefusalsOfOtherServers(t *testing.T) {
	for name, test := range map[string]struct {
		banner string
		tls    bool
		advice string
	}{
		"access list": {"Content-Type: text/rude-rejection\nContent-Length: 24\n\nAccess Denied, go away.\n", false,
			"apply-inbound-acl"},
		"a web server": {"HTTP/1.1 400 Bad Request\r\n\r\n", false, "listen-port"},
		"without TLS":  {"Content-Type: auth/request\n\n", true, "tls.enabled to false"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := feed.Config{}
			cfg.TLS.Enabled = test.tls
			p := bannerServer(t, test.banner).newPlatform(t, cfg, nil)
			_, err := p.Connect(t.Context())
			var refusal *feed.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Advice, test.advice) {
				t.Fatalf("got %v, %+v", err, refusal)
			}
		})
	}
}

// A user that may not see API events reads all the same.
func TestAPIEventsAreNotNeeded(t *testing.T) {
	f := &fakeSwitch{allowed: func(word string) bool { return word != apiEvent }, answers: answers(t, "vanilla")}
	s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil))
	snapshot, err := s.Snapshot(t.Context())
	if err != nil || len(snapshot.Notes) != 1 || !strings.Contains(snapshot.Notes[0], "esl-allowed-events") {
		t.Fatalf("got %q, %v", snapshot.Notes, err)
	}
}

func TestSubscription(t *testing.T) {
	const subclasses = " CUSTOM callcenter::info conference::maintenance sofia::register sofia::unregister sofia::expire valet_parking::info"
	for setting, want := range map[string]string{
		"": "API CHANNEL_CREATE CHANNEL_PROGRESS CHANNEL_PROGRESS_MEDIA CHANNEL_ANSWER CHANNEL_BRIDGE CHANNEL_UNBRIDGE CHANNEL_HOLD " +
			"CHANNEL_UNHOLD CHANNEL_HANGUP_COMPLETE CHANNEL_DESTROY DTMF RECORD_START RECORD_STOP HEARTBEAT SHUTDOWN" +
			subclasses,
		"CUSTOM|callcenter::info|CHANNEL_ANSWER": "API CHANNEL_ANSWER HEARTBEAT SHUTDOWN CUSTOM callcenter::info",
		"CHANNEL_ANSWER CUSTOM my_own HEARTBEAT": "API CHANNEL_ANSWER HEARTBEAT SHUTDOWN CUSTOM my_own",
		"ALL":                                    "ALL" + subclasses,
		"CHANNEL_ANSWER|ALL|x::y":                "ALL CUSTOM x::y",
	} {
		var words []string
		if setting != "" {
			words = strings.Split(setting, "|")
		}

		p := new(fakeSwitch).serve(t).newPlatform(t, feed.Config{Events: words}, nil)
		if got := strings.Join(p.Subscription(), " "); got != want {
			t.Errorf("%q subscribes to %q, want %q", setting, got, want)
		}
	}
}

func TestNewChecksTheConfiguration(t *testing.T) {
	cfg := feed.Config{Address: "pbx:8021", Password: setting.Secret("a\nb")}
	if _, err := New(cfg, feed.Deps{}); err == nil {
		t.Error("a password of two lines is accepted")
	}
	cfg.Password, cfg.TLS.Enabled, cfg.TLS.CAFile = "a", true, "no such file"
	if _, err := New(cfg, feed.Deps{}); err == nil {
		t.Error("a file that is not there is accepted")
	}
}
