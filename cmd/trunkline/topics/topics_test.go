package topics

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	eventtopics "trunkline/event/topics"
)

func newRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} })
}

func TestTopicsWithoutAServer(t *testing.T) {
	w := newRunner(t)
	w.MustFail(cli.ExitFailed, "data_dir "+w.Dir+" has no embedded broker", "topics", "list")
	w.MustRun("topics", "create", "--kafka.partitions", "3")
	w.MustRun("topics", "create")
	var topics []topicRow
	w.MustJSON(&topics, "topics", "list", "--json")
	specified := len(eventtopics.All(3))
	if len(topics) != specified || topics[0] != (topicRow{"cc.raw", 3, 1, 0}) {
		t.Errorf("topics list gives %+v", topics)
	}
	if out := w.MustRun("topics", "list"); !strings.HasPrefix(out, "TOPIC ") ||
		strings.Count(out, "\n") != specified+1 {
		t.Errorf("topics list prints %q", out)
	}

	w.MustRun("topics", "create", "--audit.topic")
	w.MustJSON(&topics, "topics", "list", "--json", "--audit.topic")
	if len(topics) != specified+1 || topics[specified] != (topicRow{"audit", 1, 1, 0}) {
		t.Errorf("with the audit topic, topics list gives %+v", topics)
	}
}
