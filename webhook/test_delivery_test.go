package webhook

import (
	"net/http"
	"strings"
	"testing"

	"trunkline/audit/audittest"
	"trunkline/internal/fault"
	"trunkline/internal/testservice/testdb"
)

func TestAnExampleEventIsSentBesideTheBacklog(t *testing.T) {
	e := newEnv(t, testdb.SQLite(t), fastSettings(), 1)
	good := e.startReceiver(nil)
	bad := e.startReceiver(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	made, refused := e.createWebhook(Config{URL: good.url, Format: FormatCloudEvents}), e.createWebhook(
		Config{URL: bad.url})

	result, err := e.service.Test(t.Context(), made.AccountID, made.ID)
	if err != nil || !result.OK || result.Message != "" {
		t.Errorf("%+v, %v", result, err)
	}

	sent := good.requests()
	if len(sent) != 1 || !strings.Contains(sent[0].body, `"webhook.test"`) ||
		sent[0].header.Get("webhook-signature") == "" ||
		!strings.HasPrefix(sent[0].header.Get("Content-Type"), "application/cloudevents+json") {
		t.Errorf("sent %+v", sent)
	}

	result, err = e.service.Test(t.Context(), refused.AccountID, refused.ID)
	if err != nil || result.OK || !strings.Contains(result.Message, "418") {
		t.Errorf("%+v, %v", result, err)
	}

	if w := e.findWebhook(refused.ID); w.Failures != 0 || w.Status != StatusActive {
		t.Errorf("the failed test counts: %+v", w)
	}
	if _, err := e.service.Test(t.Context(), "stranger", made.ID); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("of another account: %v", err)
	}

	audittest.Await(t, e.audit, made.AccountID, "webhook.test", 2)
}
