// Package home runs Holdfast on the hosts of a lab, as a person would: the real program, on each
// host a server. It serves the end-to-end tests, the demo and the benchmark.
package home

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Limit bounds each step. It is generous: the machine may be busy with other things.
const Limit = 2 * time.Minute

// commandLimit bounds a command: one with --wait ends when what it waits for has, such as a silent
// host to count as dead, which takes two minutes where nothing else is set.
const commandLimit = 4 * time.Minute

// Home is Holdfast on the hosts of a lab.
type Home struct {
	Lab *hosts.Lab
	// Binary is the holdfast program.
	Binary string

	servers []*hosts.Process
	// args are given to each start of a server.
	args []string
}

// Start starts a server on each host of the lab, the first with --init, the others with tokens of
// the first, and waits until all hosts are connected.
func Start(t hosts.T, lab *hosts.Lab, binary string) *Home {
	t.Helper()
	return StartServers(t, lab, binary, len(lab.Hosts()))
}

// StartServers is Start for the first hosts of the lab alone. args are given to each start of a
// server.
func StartServers(t hosts.T, lab *hosts.Lab, binary string, count int, args ...string) *Home {
	t.Helper()
	h := &Home{Lab: lab, Binary: binary, servers: make([]*hosts.Process, len(lab.Hosts())), args: args}
	h.StartServer(t, 1, "--init")
	h.AwaitHosts(t, 1)
	for n := 2; n <= count; n++ {
		h.JoinServer(t, n, h.Token(t, "server"))
	}
	h.AwaitHosts(t, count)
	if count >= 3 {
		Await(t, "three members of etcd", func() error { return h.members(3) })
	}
	return h
}

// StartOne starts a server on the first host of the lab and agents on the others, and waits until
// all hosts are connected.
func StartOne(t hosts.T, lab *hosts.Lab, binary string) *Home {
	t.Helper()
	h := StartServers(t, lab, binary, 1)
	for n := 2; n <= len(lab.Hosts()); n++ {
		h.StartAgent(t, n, h.Token(t, "agent"))
	}
	h.AwaitHosts(t, len(lab.Hosts()))
	return h
}

// Quorum is what 'holdfast quorum' says.
type Quorum struct {
	Leader   string
	Degraded string
	Members  []Member
	Standbys []string
}

// Member is one member of etcd.
type Member struct {
	Name           string
	Voter, Answers bool
	Problem        string
}

// Quorum asks by the server of a host how the members of etcd are.
func (h *Home) Quorum(number int) (q Quorum, err error) {
	out, err := h.HoldfastOn(number, "quorum", "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &q)
	}
	return q, err
}

// members checks that so many members of etcd vote: the control plane survives that one of three is
// lost.
func (h *Home) members(want int) error {
	q, err := h.Quorum(1)
	if err != nil {
		return err
	}
	voters := 0
	for _, m := range q.Members {
		if m.Voter && m.Answers {
			voters++
		}
	}
	if voters != want {
		return fmt.Errorf("%d vote: %+v", voters, q)
	}
	return nil
}

// StartServer starts the server of a host, the first of which is number 1.
func (h *Home) StartServer(t hosts.T, number int, args ...string) {
	t.Helper()
	h.launch(t, number, "server", "", args...)
}

// JoinServer starts the server of a host, which joins with a token that no other process sees.
func (h *Home) JoinServer(t hosts.T, number int, token string) {
	t.Helper()
	h.launch(t, number, "server", token+"\n", "--join", "-")
}

// StartAgent starts the agent of a host that has no server. The token is for its first start.
func (h *Home) StartAgent(t hosts.T, number int, token string) {
	t.Helper()
	if token == "" {
		h.launch(t, number, "agent", "")
		return
	}
	h.launch(t, number, "agent", token+"\n", "--join", "-")
}

func (h *Home) launch(t hosts.T, number int, role, stdin string, args ...string) {
	t.Helper()
	host := h.Lab.Host(number)
	if role == "server" {
		args = append(args, h.args...)
	}
	cmd := host.Command(context.Background(), h.Binary, append([]string{role}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	h.servers[number-1] = host.Launch(t, "holdfast", cmd)
}

// Server is the server of a host, or its agent.
func (h *Home) Server(number int) *hosts.Process { return h.servers[number-1] }

// Token makes a token for another server or agent.
func (h *Home) Token(t hosts.T, role string) string {
	t.Helper()
	out, err := h.Holdfast("token", "create", "--role", role)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return strings.TrimSpace(out)
}

// namesPlan finds the command by which the refusal to put data at risk names its plan.
var namesPlan = regexp.MustCompile(`name it with: holdfast (?:apply|delete) --plan (plan-[0-9a-f]+)`)

// Apply applies a manifest, which has to succeed.
func (h *Home) Apply(t hosts.T, manifest string, args ...string) {
	t.Helper()
	if out, err := h.send(manifest, append([]string{"apply", "-f", "-"}, args...)...); err != nil {
		t.Fatalf("holdfast apply: %v:\n%s", err, out)
	}
}

// PlanNamed applies a manifest that puts data at risk, which is refused, and returns the plan that
// has to be named.
func (h *Home) PlanNamed(t hosts.T, manifest string) string {
	t.Helper()
	out, err := h.send(manifest, "apply", "-f", "-", "--wait")
	if err == nil {
		t.Fatalf("holdfast apply is not refused:\n%s", out)
	}
	return PlanIn(t, string(out))
}

// PlanIn is the plan that a refusal to put data at risk names.
func PlanIn(t hosts.T, refusal string) string {
	t.Helper()
	found := namesPlan.FindStringSubmatch(refusal)
	if found == nil {
		t.Fatalf("no plan is named:\n%s", refusal)
	}
	return found[1]
}

// send runs a command of holdfast on the first host that reads a manifest.
func (h *Home) send(manifest string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	cmd := h.Lab.Host(1).Command(ctx, h.Binary, args...)
	cmd.Stdin = strings.NewReader(manifest)
	return cmd.CombinedOutput()
}

// Wipe deletes what a manifest declares with all data, as a person has to: what destroys data is
// refused until its plan is named.
func (h *Home) Wipe(t hosts.T, manifest string) {
	t.Helper()
	out, err := h.send(manifest, "delete", "-f", "-")
	if err == nil {
		return // it had no data yet
	}
	found := namesPlan.FindSubmatch(out)
	if found == nil {
		t.Fatalf("holdfast delete: %v:\n%s", err, out)
	}
	if out, err := h.Holdfast("delete", "--plan", string(found[1])); err != nil {
		t.Fatalf("holdfast delete --plan: %v:\n%s", err, out)
	}
}

// Holdfast runs a command of holdfast on the first host.
func (h *Home) Holdfast(args ...string) (string, error) { return h.HoldfastOn(1, args...) }

// HoldfastOn runs a command of holdfast on a host.
func (h *Home) HoldfastOn(number int, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	return h.Lab.Host(number).Try(ctx, h.Binary, args...)
}

// AwaitHosts waits until so many hosts have a connected agent.
func (h *Home) AwaitHosts(t hosts.T, count int) {
	t.Helper()
	Await(t, fmt.Sprintf("%d connected hosts", count), func() error {
		select {
		case <-h.servers[0].Done():
			return fmt.Errorf("the first server has ended: %w", h.servers[0].Err())
		default:
		}
		connected, err := h.connected()
		if err == nil && connected != count {
			err = fmt.Errorf("%d are connected and have reported what they have", connected)
		}
		return err
	})
}

// connected counts the hosts whose agents are connected and have reported what the hosts have, such
// as disks: what is declared before counts without the others.
func (h *Home) connected() (int, error) {
	list, err := h.hosts()
	count := 0
	for _, host := range list {
		if meta.IsStatusConditionTrue(host.Status.Conditions, api.HostAgentConnected) && len(host.Status.Packages) > 0 {
			count++
		}
	}
	return count, err
}

func (h *Home) hosts() ([]api.Host, error) {
	text, err := h.Get(1, Resource{Kind: "hosts"})
	if err != nil {
		return nil, err
	}
	var list api.HostList
	err = json.Unmarshal(text, &list)
	return list.Items, err
}

// AwaitFreeDisks waits until all disks of all hosts can be used for something new.
func (h *Home) AwaitFreeDisks(t hosts.T) {
	t.Helper()
	Await(t, "free disks", func() error {
		list, err := h.hosts()
		if err != nil {
			return err
		}
		for _, host := range list {
			for _, d := range host.Status.Devices {
				if d.Availability != api.DeviceAvailable {
					return fmt.Errorf("%s on %s: %s", d.ID, host.Name, strings.Join(d.Reasons, "; "))
				}
			}
		}
		return nil
	})
}

// Await calls check again and again until it returns no error.
func Await(t hosts.T, what string, check func() error) {
	t.Helper()
	AwaitFor(t, Limit, what, check)
}

// AwaitFor is Await of what may take longer. Between two checks it pauses for at least twice as
// long as a check takes, so that looking does not hold up what is looked for.
func AwaitFor(t hosts.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	end := time.Now().Add(limit)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		began := time.Now()
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited %s for %s: %v", limit, what, err)
		}
		time.Sleep(max(pause, min(2*time.Since(began), time.Second)))
	}
}
