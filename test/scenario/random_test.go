package scenario

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// story is a random course of events, drawn before it is played: time is virtual only where it is played.
type story struct {
	// start are the commands that make the world, events those that follow.
	start, events []happening
}

// happening is a command of a scenario, and how many steps the agents move after it.
type happening struct {
	command string
	// pick chooses among what is there then, such as Daemons.
	pick  int
	input string
	steps int
}

const (
	mostHosts = 5
	disksEach = 3
)

func diskName(host, disk int) string { return fmt.Sprintf("d%d%d", host, disk) }

func drawStory(t *rapid.T) story {
	var s story
	hosts := rapid.IntRange(1, mostHosts).Draw(t, "hosts")
	for h := range hosts {
		s.start = append(s.start, happening{command: addHost(h)})
		if rapid.IntRange(0, 5).Draw(t, "used disk") == 0 {
			s.start = append(s.start, happening{command: "use-disk h" + fmt.Sprint(h) + " disk=" + diskName(h, rapid.IntRange(0, disksEach-1).Draw(t, "disk"))})
		}
	}
	declared := drawCluster(t, "c")
	if rapid.IntRange(0, 3).Draw(t, "second cluster") == 0 {
		declared += drawCluster(t, "blue/b")
	}
	for h := range hosts {
		if rapid.IntRange(0, 9).Draw(t, "no node") != 0 {
			declared += drawNode(t, h)
		}
	}
	s.start = append(s.start, happening{command: "apply", input: declared, steps: rapid.IntRange(0, 20).Draw(t, "steps")})
	s.events = rapid.SliceOfN(rapid.Custom(drawHappening), 0, 12).Draw(t, "events")
	return s
}

func addHost(h int) string {
	disks := make([]string, disksEach)
	for d := range disks {
		disks[d] = diskName(h, d)
	}
	return fmt.Sprintf("add-host h%d disks=(%s)", h, strings.Join(disks, ","))
}

func drawCluster(t *rapid.T, name string) string {
	return fmt.Sprintf("cluster %s mons=%d mgrs=%d policy=%s\n", name, rapid.SampledFrom([]int{1, 1, 1, 3, 3, 3, 5, 2}).Draw(t, "mons"),
		rapid.IntRange(1, 3).Draw(t, "mgrs"), rapid.SampledFrom([]string{"Retain", "Wipe"}).Draw(t, "policy"))
}

// drawNode declares a host to one of the clusters, most often to the first and under the host's own name.
func drawNode(t *rapid.T, h int) string {
	var devices []string
	for d := range disksEach - 1 { // the last is never named, and must never be touched
		switch rapid.IntRange(0, 4).Draw(t, "device") {
		case 0:
		case 1:
			devices = append(devices, fmt.Sprintf("/dev/sd%c", 'b'+d))
		default:
			devices = append(devices, diskName(h, d))
		}
	}
	namespace := rapid.SampledFrom([]string{"default", "default", "default", "blue"}).Draw(t, "namespace")
	name := rapid.SampledFrom([]string{"n", "n", "n", "m"}).Draw(t, "name")
	return fmt.Sprintf("node %s/%s%d host=h%d devices=(%s)\n", namespace, name, h, h, strings.Join(devices, ","))
}

func drawHappening(t *rapid.T) happening {
	h := rapid.IntRange(0, mostHosts-1).Draw(t, "host")
	disk := fmt.Sprintf("h%d disk=%s", h, diskName(h, rapid.IntRange(0, disksEach-2).Draw(t, "disk")))
	cluster := rapid.SampledFrom([]string{"c", "c", "blue/b"}).Draw(t, "cluster")
	host := fmt.Sprintf(" h%d", h)
	command := rapid.SampledFrom([]string{
		addHost(h), addHost(h), "apply node", "apply node", "apply node", "apply cluster", "apply cluster",
		"delete node=" + fmt.Sprintf("n%d", h), "delete cluster=" + cluster, "delete a daemon",
		"fail-host" + host, "restore-host" + host, "silence-agent" + host, "hear-agent" + host,
		"fail-disk " + disk, "return-disk " + disk, "use-disk " + disk, "break a daemon", "mend all",
		"host-mode" + host + " mode=Maintenance", "host-mode" + host + " mode=Drain", "host-mode" + host + " mode=Active",
		"label-host" + host + " rack=a", "label-host" + host + " rack=b",
		"kill-leader", "kill-leader", "end-leader", "cut off", "cut off", "cut off", "fail once", "fail once",
	}).Draw(t, "command")
	e := happening{command: command, pick: rapid.IntRange(0, 40).Draw(t, "pick"), steps: rapid.IntRange(0, 25).Draw(t, "steps")}
	switch command {
	case "apply node":
		e.command, e.input = "apply", drawNode(t, h)
	case "apply cluster":
		e.command, e.input = "apply", drawCluster(t, cluster)
	}
	return e
}
