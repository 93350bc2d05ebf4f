package explain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/explain"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/settings"
)

const password = "a password of the demo"

// explain shows an event of a running server without subscribers as a table and as JSON.
func TestExplain(t *testing.T) {
	e := clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{savedlogin.LoginCommand(p), explain.Command(p)}
	})
	e.Environ = []string{"HOME=" + t.TempDir(), "TRUNKLINE_PASSWORD=" + password}
	none := event.FirstID(time.Now(), 0).String()
	e.MustFail(cli.ExitUsage, "not an event id", "explain", "yesterday")
	e.MustFail(cli.ExitUsage, "run trunkline login", "explain", none)
	e.Serve(func(s *settings.Settings) { s.DemoPassword, s.Kafka.Partitions = password, 1 })
	e.MustRun("login", "--username", "bob", "--domain", "demo.local")
	e.MustFail(cli.ExitFailed, "403", "explain", none)
	e.MustRun("login", "--username", "admin", "--domain", "demo.local")
	e.MustFail(cli.ExitFailed, "404", "explain", none)

	id := produce(e)
	code, out, errs := e.Run("explain", id)
	for _, want := range []string{
		"event    " + id + "  AGENT_LOGIN, cc.evt 0:", "raw      cc.raw 0:", ", source test",
		"format   generic, from header", "account  demo, from key",
		"agent_id=1001, from record",
	} {
		if code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in:\n%s%s", code, want, out, errs)
		}
	}

	if !strings.Contains(errs, "no connection: none is open") {
		t.Errorf("stderr %q", errs)
	}

	var got struct {
		Event struct {
			Message struct{ ID string }
		}
		Connections []any
		Complete    bool
	}
	if out := e.MustRun("explain", id, "--json", "--user", "bob"); json.Unmarshal([]byte(out), &got) != nil ||
		strings.Count(out, "\n") != 1 ||
		got.Event.Message.ID != id || got.Connections == nil || !got.Complete {
		t.Errorf("--json prints %s", out)
	}
}

// produce produces an agent login to cc.raw and returns the id of its event.
func produce(e *clitest.Runner) (id string) {
	e.T.Helper()
	err := (&cli.Program{Env: append(e.Environ, "TRUNKLINE_DATA_DIR="+e.Dir)}).WithKafka(e.T.Context(),
		func(_ *settings.Settings, cluster *kafka.Cluster) error {
			producer := cluster.NewProducer(kafka.ProducerConfig{})
			err := producer.Produce(e.T.Context(),
				kafka.Record{Topic: event.TopicRaw, Partition: 0, Key: []byte("demo"),
					Value: []byte(`{"type":"AGENT_LOGIN","data":{"agent_id":"1001"}}`),
					Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte("generic")},
						{Key: event.HeaderSource, Value: []byte("test")}}})
			if err != nil {
				return err
			}

			for began := time.Now(); id == "" && time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
				last, err := cluster.LastRecord(e.T.Context(), event.TopicEvents, 0)
				if err != nil {
					return err
				}

				if last != nil {
					found, err := event.MessageID(last.Value)
					if err != nil {
						return err
					}
					id = found.String()
				}
			}

			return producer.Close(e.T.Context())
		})
	if err != nil || id == "" {
		e.T.Fatalf("producing an event: %q, %v", id, err)
	}

	return id
}

// Every outcome has its own text in the table.
func TestEveryOutcomeIsShown(t *testing.T) {
	for text, body := range map[string]string{
		"queue_ids is sales, a and 1 more":                 `{"outcome":"filtered","filtered_by":{"field":"queue_ids","admits":["sales","a"],"count":3}}`,
		"event_types does not select it":                   `{"outcome":"filtered","filtered_by":{"field":"event_types"}}`,
		"its user sees account kiosk":                      `{"outcome":"not_visible","account_id":"kiosk"}`,
		"it began after the event":                         `{"outcome":"connected_later"}`,
		"resumed after earliest":                           `{"outcome":"resumed_later","resumed_from":"earliest"}`,
		"refused with 410 at":                              `{"outcome":"resume_refused","code":410,"reason":"no such event"}`,
		"it waited in the queue; ended":                    `{"outcome":"dropped","code":4008,"reason":"too slow"}`,
		"with 1006 connection broken":                      `{"outcome":"disconnected","code":1006,"reason":"connection broken"}`,
		"resumed after cc_evt_1795193617905000451; queued": `{"outcome":"delivered","resumed_from":"cc_evt_1795193617905000451","queued_at":1795193617.905}`,
	} {
		if got := explain.Why([]byte(body)); !strings.Contains(got, text) {
			t.Errorf("%s: %q", body, got)
		}
	}
}
