package kazoo

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"trunkline/ingest/feed"
)

// operationError wraps err with the operation, as a *feed.Refusal if only a change of settings can resolve it.
// b is the binding of the operation, if it has one.
func (p *platform) operationError(operation string, err error, b binding) error {
	err = fmt.Errorf("%s: %w", operation, err)
	advice := p.advice(err, b)
	if advice != "" {
		return &feed.Refusal{Err: err, Advice: advice}
	}
	return err
}

// advice returns the change of settings that resolves an error, "" if none does.
func (p *platform) advice(err error, b binding) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "set tls.ca_file to the CA that signed RabbitMQ's certificate (ssl_options.certfile), and use a host name that is in it"
	}

	var broker *amqp.Error
	if !errors.As(err, &broker) {
		return ""
	}

	user, vhost := p.loginNames()
	switch broker.Code {
	case amqp.AccessRefused:
		switch {
		case strings.Contains(broker.Reason, "exclusive use"):
			return "" // another node consumes, or RabbitMQ has not yet closed a lost connection
		case strings.Contains(broker.Reason, "access to"):
			return p.permissions(user, vhost)
		}

		return fmt.Sprintf(
			"the user or its password in url is wrong: rabbitmqctl add_user %s PASSWORD, or rabbitmqctl change_password %s PASSWORD; the user guest may only log in from RabbitMQ's own machine",
			user, user)
	case amqp.NotAllowed:
		return fmt.Sprintf(
			"the vhost %s does not exist or the user has no rights in it: name Kazoo's vhost at the end of url (rabbitmqctl list_vhosts), and %s",
			vhost, p.permissions(user, vhost))
	case amqp.NotFound:
		if b.exchange == "" {
			return ""
		}
		return fmt.Sprintf(
			"Kazoo has not declared the exchange %s (rabbitmqctl -p %s list_exchanges): start the application that does, or leave its words out of events",
			b.exchange, vhost)
	case amqp.PreconditionFailed:
		return fmt.Sprintf(
			"the queue was made with other arguments, by another version: rabbitmqctl -p %s delete_queue %s; the messages in it are lost",
			vhost, p.queueName())
	}

	return ""
}

// permissions returns the command that grants the permissions that the feed needs.
func (p *platform) permissions(user, vhost string) string {
	own := `trunkline\..*`
	read := []string{own}
	seen := map[string]bool{}

	for _, b := range p.bindings {
		if !seen[b.exchange] {
			seen[b.exchange] = true
			read = append(read, b.exchange)
		}
	}

	return fmt.Sprintf("rabbitmqctl set_permissions -p %s %s '^%s$' '^%s$' '^(%s)$'", vhost, user, own, own,
		strings.Join(read, "|"))
}

// loginNames returns the user and the vhost of the setting url, or RabbitMQ's own.
func (p *platform) loginNames() (user, vhost string) {
	user, vhost = "guest", "/"
	parsed, err := url.Parse(p.url)
	if err == nil {
		if parsed.User != nil {
			user = parsed.User.Username()
		}

		path := strings.TrimPrefix(parsed.Path, "/")
		if path != "" {
			vhost = path
		}
	}

	return user, vhost
}
