package testservice

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"trunkline/internal/freeport"
)

// RabbitMQ returns the amqp:// URL of a shared RabbitMQ, with all rights; name queues and
// exchanges with Prefix.
func RabbitMQ(t testing.TB) string {
	t.Helper()
	return openShared(t, sharedRabbitMQ).address
}

func localRabbitMQ(ctx context.Context, _ stopPolicy) (*service, error) {
	return startShared(ctx, func(context.Context) (*Server, error) { return newRabbitMQ(nil) },
		func(s *Server) string { return s.URL })
}

// RabbitMQUser is a user of an OwnRabbitMQ. The password is the name. The rights are
// regular expressions, as in rabbitmqctl set_permissions.
type RabbitMQUser struct{ Name, Configure, Write, Read string }

// OwnRabbitMQ starts a RabbitMQ for this test, with the given users and guest, which has all
// rights. After a kill and a restart it has its durable queues with their persistent messages.
func OwnRabbitMQ(t testing.TB, users ...RabbitMQUser) *Server {
	t.Helper()
	return startOwn(t, func(context.Context) (*Server, error) { return newRabbitMQ(users) })
}

const rabbitMQScript = "/usr/lib/rabbitmq/bin/rabbitmq-server" // the one in PATH switches to its own user

func newRabbitMQ(users []RabbitMQUser) (*Server, error) {
	for _, program := range []string{rabbitMQScript, "epmd", "setpriv"} {
		_, err := exec.LookPath(program)
		if err != nil {
			return nil, fmt.Errorf("%w: looking for RabbitMQ: %w", errMissing, err)
		}
	}

	dir, err := newFolder("rabbitmq")
	if err != nil {
		return nil, err
	}

	ports, err := freeport.Find(3)
	if err == nil {
		err = configureRabbitMQ(dir, users)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}

	address, distPort, epmdPort := hostPort(ports[0]), strconv.Itoa(ports[1]), strconv.Itoa(ports[2])
	return &Server{
		Addr: address, URL: rabbitMQURL(address), dir: dir, origin: rabbitMQScript,
		command: command{
			name: "rabbitmq", dir: dir, stopSignal: syscall.SIGKILL,
			// It would start Erlang's name server, which outlives it.
			args: []string{"/bin/sh", "-c",
				"setpriv --pdeathsig KILL epmd -port " + epmdPort + " -address 127.0.0.1 & exec " + rabbitMQScript},
			env: []string{
				"HOME=" + dir, "RUNNING_UNDER_SYSTEMD=true", // exec the server in place of the script
				"RABBITMQ_NODENAME=trunkline@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
				"RABBITMQ_NODE_PORT=" + strconv.Itoa(ports[0]), "RABBITMQ_DIST_PORT=" + distPort,
				"ERL_EPMD_PORT=" + epmdPort, "ERL_EPMD_ADDRESS=127.0.0.1",
				"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"), "RABBITMQ_LOG_BASE=" + dir, "RABBITMQ_LOGS=-",
				"RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_ADVANCED_CONFIG_FILE=" + filepath.Join(dir, "none"),
				"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq"),
				"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "plugins"),
				"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} +S 2:2",
			},
		},
		probe: func(ctx context.Context) error { return probeAMQP(ctx, address) },
	}, nil
}

func rabbitMQURL(address string) string { return "amqp://guest:guest@" + address + "/" }

// configureRabbitMQ writes the configuration and the definitions.
func configureRabbitMQ(dir string, users []RabbitMQUser) error {
	type user struct {
		Name      string   `json:"name"`
		Hash      string   `json:"password_hash"`
		Algorithm string   `json:"hashing_algorithm"`
		Tags      []string `json:"tags"`
	}
	type permission struct {
		User      string `json:"user"`
		Vhost     string `json:"vhost"`
		Configure string `json:"configure"`
		Write     string `json:"write"`
		Read      string `json:"read"`
	}
	var definitions struct {
		Users       []user              `json:"users"`
		Vhosts      []map[string]string `json:"vhosts"`
		Permissions []permission        `json:"permissions"`
	}
	definitions.Vhosts = []map[string]string{{"name": "/"}}
	const noPermission = "^$"

	for _, u := range append(slices.Clone(users), RabbitMQUser{"guest", ".*", ".*", ".*"}) {
		definitions.Users = append(definitions.Users,
			user{u.Name, rabbitMQHash(u.Name), "rabbit_password_hashing_sha256", []string{}})
		definitions.Permissions = append(definitions.Permissions, permission{
			u.Name, "/", cmp.Or(u.Configure, noPermission), cmp.Or(u.Write, noPermission), cmp.Or(u.Read, noPermission),
		})
	}

	text, err := json.Marshal(definitions)
	if err != nil {
		return fmt.Errorf("writing RabbitMQ's definitions: %w", err)
	}

	path := filepath.Join(dir, "definitions.json")
	for name, content := range map[string]string{
		path:                                string(text),
		filepath.Join(dir, "plugins"):       "[].\n",
		filepath.Join(dir, "rabbitmq.conf"): "loopback_users = none\nload_definitions = " + path + "\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing RabbitMQ's configuration: %w", err)
		}
	}

	return nil
}

// rabbitMQHash returns a password's hash: a salt of 4 bytes, and the SHA-256 of both.
func rabbitMQHash(password string) string {
	salt := []byte("salt")
	sum := sha256.Sum256(append(slices.Clone(salt), password...))
	return base64.StdEncoding.EncodeToString(append(salt, sum[:]...))
}

// probeAMQP sends the protocol header of AMQP 0-9-1, which a server answers with a
// method frame (type 1): connection.start.
func probeAMQP(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()

	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}

	_, err = conn.Write([]byte("AMQP\x00\x00\x09\x01"))
	if err != nil {
		return err
	}

	var first [1]byte
	_, err = io.ReadFull(conn, first[:])
	if err != nil {
		return err
	}

	if first[0] != 1 {
		return fmt.Errorf("it answers with a frame of type %d", first[0])
	}

	return nil
}
