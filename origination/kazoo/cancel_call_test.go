package kazoo

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/origination"
)

func TestCancel(t *testing.T) {
	t.Run("a call that is there", func(t *testing.T) {
		k := newScriptedCrossbar(t, loginExchange("t1"), connectExchange("c1", 202, `{"data":{"call_id":"o1"}}`),
			hangUpExchange)
		d := k.newDriver()
		if _, err := d.Originate(t.Context(), order("c1")); err != nil {
			t.Fatal(err)
		}
		if err := d.Cancel(t.Context(), "o1"); err != nil {
			t.Fatal(err)
		}

		k.expect(channelExchange(200, `{"data":{}}`), hangUpExchange, channelExchange(404, `{}`))
		reported := collectReports(t, d)
		within(t, "it has ended",
			func() bool { return slices.Equal(reported(), []string{"o1 ended ORIGINATOR_CANCEL"}) })
	})

	t.Run("a call that has no channel yet", func(t *testing.T) {
		missing := hangUpExchange
		missing.status = 404
		k := newScriptedCrossbar(t, loginExchange("t1"), connectExchange("c1", 202, `{"data":{"call_id":"o1"}}`),
			missing)
		d := k.newDriver()
		if _, err := d.Originate(t.Context(), order("c1")); err != nil {
			t.Fatal(err)
		}
		if err := d.Cancel(t.Context(), "o1"); err != nil {
			t.Fatal(err)
		}

		k.expect(channelExchange(404, `{}`), channelExchange(200, `{"data":{}}`), hangUpExchange,
			channelExchange(404, `{}`))
		reported := collectReports(t, d)
		within(t, "it has ended",
			func() bool { return slices.Equal(reported(), []string{"o1 ended ORIGINATOR_CANCEL"}) })
	})

	t.Run("during a request of a poll", func(t *testing.T) {
		history, release := make(chan struct{}), make(chan struct{})
		k := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPut:
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, `{"auth_token":"t1"}`)
			case strings.HasSuffix(r.URL.Path, "/history"):
				close(history)
				<-release
				_, _ = io.WriteString(w, `{"data":[{"call_id":"o1","cause":"NO_ANSWER"}]}`)
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}))

		t.Cleanup(k.Close)
		d, err := New(Config{Settings: Settings{URL: k.URL, APIKey: "k"}, Timeout: time.Minute,
			PollEvery: 5 * time.Millisecond},
			k.Client(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}

		reported := collectReports(t, d,
			origination.OpenCall{Order: order("c1"), CallID: "o1", State: origination.Bridged})
		<-history
		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		err = d.Cancel(ctx, "o1") // the poll has locked the call
		close(release)
		if fault.KindOf(err) != fault.KindUnavailable || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}

		within(t, "it has ended", func() bool { return slices.Equal(reported(), []string{"o1 ended NO_ANSWER"}) })
	})

	t.Run("an unknown call", func(t *testing.T) {
		err := newScriptedCrossbar(t).newDriver().Cancel(t.Context(), "o2")
		if fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("got %v", err)
		}
	})

	t.Run("refused", func(t *testing.T) {
		refused := hangUpExchange
		refused.status = 403
		k := newScriptedCrossbar(t, loginExchange("t1"), connectExchange("c1", 202, `{"data":{"call_id":"o1"}}`),
			refused)
		d := k.newDriver()
		if _, err := d.Originate(t.Context(), order("c1")); err != nil {
			t.Fatal(err)
		}
		if err := d.Cancel(t.Context(), "o1"); fault.KindOf(err) != fault.KindRefused {
			t.Errorf("got %v", err)
		}
	})
}
