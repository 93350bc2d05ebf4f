package backend

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/testservice"
	"trunkline/settings"
)

const memberVariable = "TRUNKLINE_TEST_GROUP_MEMBER" // the topic prefix: be a member, until killed

// groupMember counts the partitions that a member of a group works on.
type groupMember struct {
	mu         sync.Mutex
	partitions int
}

func (a *groupMember) work(ctx context.Context, _ *kafka.Assignment) error {
	a.add(1)
	defer a.add(-1)
	<-ctx.Done()
	return nil
}

func (a *groupMember) add(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.partitions += n
}

func (a *groupMember) await(t *testing.T, partitions int) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		a.mu.Lock()
		n := a.partitions
		a.mu.Unlock()

		if n == partitions {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("works on %d partitions, want %d", n, partitions)
		}
	}
}

// joinGroup takes part in a group as a node does.
func joinGroup(t *testing.T, prefix string, log io.Writer) *groupMember {
	t.Helper()
	s := settings.Default()
	s.Kafka.Brokers, s.Kafka.TopicPrefix = testservice.Kafka(t), prefix
	client := redis.NewClient(&redis.Options{Addr: testservice.Redis(t)})
	t.Cleanup(func() { client.Close() })
	cluster, closeKafka, err := OpenKafka(t.Context(), s, &Liveness{Client: client, Prefix: prefix},
		prometheus.NewRegistry(), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { closeKafka() })
	if err := cluster.EnsureTopics(t.Context(), []topics.Spec{{Name: "t", Partitions: 6}}); err != nil {
		t.Fatal(err)
	}

	ctx, leave := context.WithCancel(context.WithoutCancel(t.Context()))

	var member sync.WaitGroup
	a := &groupMember{}
	member.Go(func() {
		if err := cluster.RunGroup(ctx, kafka.GroupConfig{Group: "g", Topics: []string{"t"}}, a.work); err != nil {
			t.Error(err)
		}
	})

	t.Cleanup(func() {
		leave()
		member.Wait()
	})

	return a
}

// awaitReports waits until Redis knows so many members.
func awaitReports(t *testing.T, prefix string, members int) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: testservice.Redis(t)})
	defer client.Close()

	liveness := &Liveness{Client: client, Prefix: prefix}
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		counts, err := liveness.Report(t.Context(), prefix+"g", "")
		if err == nil && len(counts) == members {
			return
		}

		if time.Since(began) > time.Minute {
			t.Fatalf("reports %v, %v", counts, err)
		}
	}
}

// TestAKilledMemberIsReplacedSoon kills a process with half of a group's
// partitions. Kafka alone notices after its session timeout, 6 s and more.
func TestAKilledMemberIsReplacedSoon(t *testing.T) {
	if prefix := os.Getenv(memberVariable); prefix != "" {
		joinGroup(t, prefix, io.Discard).await(t, 3)
		os.Stdout.WriteString("joined\n")
		select {}
	}

	prefix := testservice.Prefix(t)
	log := &testservice.Log{}
	survivor := joinGroup(t, prefix, log)
	survivor.await(t, 6)
	var took []time.Duration

	for range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), memberVariable+"="+prefix)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}

		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}

		line, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil || !strings.Contains(line, "joined") {
			t.Fatalf("%q, %v", line, err)
		}

		survivor.await(t, 3)
		awaitReports(t, prefix, 2)
		killed := time.Now()

		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}

		cmd.Wait() // says that it was killed
		survivor.await(t, 6)
		took = append(took, time.Since(killed))
	}

	t.Logf("partitions of a killed process were taken over after %v", took)
	if !strings.Contains(log.String(), "silent member removed from the consumer group") {
		t.Errorf("only Kafka's session timeout noticed:\n%s", log)
	}
}
