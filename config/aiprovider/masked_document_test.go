package aiprovider

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"trunkline/audit/audittest"
	"trunkline/internal/sqldb"
)

func TestAMaskStandsOnlyForWhatIsStored(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		s := openService(t, db, fileKeys(t))
		made := createProvider(t, s, "acme", whole)
		body := strings.Replace(whole, `"X-Tenant":"7"`, `"X-Other":"********"`, 1)
		if _, err := s.Update(ctx, "acme", made.ID,
			members(t, body)); fmt.Sprint(codes(err)) != "[websocket.headers.X-Other masked]" {
			t.Errorf("PUT: %v %v", err, codes(err))
		}
		if _, err := s.Create(ctx, "acme",
			members(t, body)); fmt.Sprint(codes(err)) != "[websocket.headers.X-Other masked]" {
			t.Errorf("POST: %v %v", err, codes(err))
		}
		if p, err := s.Open(ctx, made.ID); err != nil || p.Headers["X-Tenant"] != "7" {
			t.Errorf("a refused PUT has changed something: %v", err)
		}

		// A PUT of GET's response changes nothing.
		answered, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}

		if again, err := s.Update(ctx, "acme", made.ID, members(t, string(answered))); err != nil ||
			!reflect.DeepEqual(again, made) {
			t.Errorf("GET, PUT: %+v, %v", again, err)
		}
		if p, err := s.Open(ctx, made.ID); err != nil || p.Headers["Authorization"] != "Bearer abc" ||
			p.Headers["X-Tenant"] != "7" {
			t.Errorf("the values are lost: %v", err)
		}
	})
}

func TestStoredHeadersAreNotSentToAnotherOrigin(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		s := openService(t, db, fileKeys(t))
		masked := strings.NewReplacer("Bearer abc", Mask, `"7"`, `"`+Mask+`"`).Replace(whole)

		for _, moved := range []string{
			"wss://thief.example.com/voice", "wss://ai.example.com:8443/voice", "wss://ai.example.com./voice",
			"wss://ai.example.com.thief.example/voice", "wss://ai.example.co/voice",
		} {
			made := createProvider(t, s, "acme", whole)
			_, err := s.Update(ctx, "acme", made.ID,
				members(t, strings.Replace(masked, "wss://ai.example.com/voice", moved, 1)))
			if got := fmt.Sprint(
				codes(err)); got != "[websocket.headers.Authorization masked websocket.headers.X-Tenant masked]" {
				t.Errorf("%s: %v %s", moved, err, got)
			}
			if p, err := s.Open(ctx, made.ID); err != nil || p.URL != "wss://ai.example.com/voice" ||
				p.Headers["Authorization"] != "Bearer abc" {
				t.Errorf("%s: a refused PUT changed the provider: %v", moved, err)
			}

			fresh := strings.Replace(whole, "wss://ai.example.com/voice", moved, 1)
			if _, err := s.Update(ctx, "acme", made.ID, members(t, fresh)); err != nil {
				t.Errorf("%s with new values: %v", moved, err)
			}
		}

		for _, same := range []string{"wss://ai.example.com/other?x=1", "wss://AI.example.com:443/voice"} {
			made := createProvider(t, s, "acme", whole)
			if _, err := s.Update(ctx, "acme", made.ID,
				members(t, strings.Replace(masked, "wss://ai.example.com/voice", same, 1))); err != nil {
				t.Errorf("%s: %v %v", same, err, codes(err))
			}
			if p, err := s.Open(ctx, made.ID); err != nil || p.Headers["Authorization"] != "Bearer abc" {
				t.Errorf("%s: the values are lost: %v", same, err)
			}
		}
	})
}

func TestASecretIsSealedMaskedAndStaysWithItsHost(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		s := openService(t, db, fileKeys(t))
		const body = `{"name":"Bot","media":{"audioFormat":"g711_ulaw","sampleRate":8000},"websocket":{"url":"wss://bot.example.com/media"},` +
			`"protocol":"twilio","secret":"auth-token-1","session":{"bot":"sales"}}`
		made := createProvider(t, s, "acme", body)
		shown, err := s.Find(ctx, "acme", made.ID)
		if err != nil || shown.Secret != Mask || string(shown.Session) != `{"bot":"sales"}` ||
			shown.Protocol != "twilio" || shown.WebSocket.Headers != nil {
			t.Errorf("shown: %q %s %q %v, %v", shown.Secret, shown.Session, shown.Protocol, shown.WebSocket.Headers,
				err)
		}

		var stored string
		if err := db.QueryRowContext(ctx, `SELECT sealed FROM ai_providers`).Scan(&stored); err != nil ||
			strings.Contains(stored, "auth-token") {
			t.Errorf("stored: %q, %v", stored, err)
		}

		masked := strings.Replace(body, "auth-token-1", Mask, 1)
		kept := strings.Replace(masked, `/media"`, `/other","headers":{"X-A":"1"}`, 1)
		if _, err := s.Update(ctx, "acme", made.ID, members(t, kept)); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Open(ctx, made.ID); err != nil || p.Secret != "auth-token-1" ||
			!reflect.DeepEqual(p.Headers, map[string]string{"X-A": "1"}) {
			t.Errorf("opened after a PUT with the mask: %v %q, %v", p.Secret, p.Headers, err)
		}

		moved := strings.Replace(masked, "bot.example.com", "evil.example.com", 1)
		if _, err := s.Update(ctx, "acme", made.ID, members(t, moved)); fmt.Sprint(codes(err)) != "[secret masked]" {
			t.Errorf("a PUT that moves the secret: %v", codes(err))
		}
		if _, err := s.Create(ctx, "acme", members(t, masked)); fmt.Sprint(codes(err)) != "[secret masked]" {
			t.Errorf("a POST with the mask: %v", codes(err))
		}
		if _, err := s.Update(ctx, "acme", made.ID,
			members(t, strings.Replace(body, `"secret":"auth-token-1",`, "", 1))); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Open(ctx, made.ID); err != nil || p.Secret != "" {
			t.Errorf("a PUT without the secret: %q, %v", p.Secret, err)
		}
	})
}
