package testservice

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/segmentio/kafka-go"

	"trunkline/internal/freeport"
)

//go:embed kafkahome/server.properties.tmpl
var serverProperties string

// broker is one local Apache Kafka process, broker and controller in one.
type broker struct {
	home *kafkaHome
	dir  string
	proc *process
	brokerSettings
}

// brokerSettings are the fields of server.properties.tmpl.
type brokerSettings struct {
	Node                         int      // its node.id, from 1
	Client, Internal, Controller string   // loopback addresses
	Voters                       string   // of the quorum: id@address of each broker
	Data                         string   // folder of the log
	Replicas, InSync             int      // of a topic by default
	SASL                         bool     // clients have to log in
	Managed                      *managed // nil: without its listeners
}

// newBrokers prepares n brokers of one cluster under dir, formatted but not started. scram, if
// not empty, is the argument of add-scram.
func newBrokers(ctx context.Context, home *kafkaHome, dir string, n int, scram string,
	managedListeners *managed) ([]*broker, error) {
	ports, err := freeport.Find(3 * n)
	if err != nil {
		return nil, err
	}

	voters := make([]string, n)
	brokers := make([]*broker, n)
	for i := range n {
		brokerPorts := ports[3*i:]
		brokerDir := filepath.Join(dir, fmt.Sprintf("broker%d", i+1))
		brokers[i] = &broker{home: home, dir: brokerDir, brokerSettings: brokerSettings{
			Node: i + 1, Client: hostPort(brokerPorts[0]), Internal: hostPort(brokerPorts[1]),
			Controller: hostPort(brokerPorts[2]),
			Data:       filepath.Join(brokerDir, "data"), Replicas: min(n, 3), InSync: max(1, min(n, 3)-1),
			SASL:    scram != "",
			Managed: managedListeners,
		}}
		voters[i] = fmt.Sprintf("%d@%s", i+1, hostPort(brokerPorts[2]))
	}

	id := make([]byte, 16)
	rand.Read(id)

	cluster := base64.RawURLEncoding.EncodeToString(id)
	return brokers, inParallel(brokers, func(b *broker) error {
		// Only here all addresses are known: each broker names all voters.
		b.Voters = strings.Join(voters, ",")
		return b.formatStorage(ctx, cluster, scram)
	})
}

func (b *broker) formatStorage(ctx context.Context, cluster, scram string) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of a broker: %w", err)
	}

	text, err := template.New("server.properties").Parse(serverProperties)
	if err != nil {
		return fmt.Errorf("reading the broker's settings: %w", err)
	}

	file, err := os.Create(b.properties())
	if err != nil {
		return fmt.Errorf("writing the broker's settings: %w", err)
	}

	if err := errors.Join(text.Execute(file, b.brokerSettings), file.Close()); err != nil {
		return fmt.Errorf("writing the broker's settings: %w", err)
	}

	args := b.javaCommand("kafka.tools.StorageTool", "format", "--cluster-id="+cluster, "-c", b.properties())
	if scram != "" {
		args = append(args, "--add-scram", scram)
	}

	output, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("formatting the broker's storage: %w: %s", err, output)
	}

	return nil
}

func (b *broker) properties() string { return filepath.Join(b.dir, "server.properties") }

func (b *broker) javaCommand(class string, args ...string) []string {
	all := []string{
		"java", "-Xmx384m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		// saves a quarter of the start time; Maven has verified the jars
		"-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
	}

	if b.Managed != nil {
		all = append(all, "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="+b.Managed.KeysURL())
	}

	return append(append(all, "-cp", b.home.classPath(), class), args...)
}

// launch starts the process and returns before it is ready.
func (b *broker) launch() (err error) {
	b.proc, err = launch(command{
		name: "kafka", dir: b.dir, stopSignal: syscall.SIGKILL, // its data is not needed afterwards
		args: b.javaCommand("kafka.Kafka", b.properties()),
	})
	return err
}

// awaitReady waits until the broker answers and lists n brokers, including itself.
func (b *broker) awaitReady(ctx context.Context, n int) error {
	return b.proc.await(ctx, func(ctx context.Context) error { return probeKafka(ctx, b.Internal, b.Node, n) })
}

func probeKafka(ctx context.Context, address string, node, n int) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	conn, err := kafka.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()

	if err := conn.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
		return err
	}

	brokers, err := conn.Brokers()
	if err != nil {
		return err
	}

	listsItself := slices.ContainsFunc(brokers, func(k kafka.Broker) bool { return k.ID == node })
	if len(brokers) < n || !listsItself {
		return fmt.Errorf("it lists %d of %d brokers, itself included: %v", len(brokers), n, listsItself)
	}

	return nil
}

// inParallel calls work for each item and joins the errors.
func inParallel[T any](items []T, work func(T) error) error {
	errs := make([]error, len(items))
	done := make(chan struct{})
	for i, item := range items {
		go func() {
			errs[i] = work(item)
			done <- struct{}{}
		}()
	}

	for range items {
		<-done
	}

	return errors.Join(errs...)
}
