package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

type options struct {
	server, work, setting, scenario string
	count, updates, churn, handlers int
	relist, deeper                  bool
	rates                           []rate
	settle                          time.Duration
	readMillis, items               int
}

type rate struct{ perSecond, count int }

func parse(arguments []string) options {
	o := options{work: "pods", count: 20_000, scenario: "life", handlers: 1, deeper: true, settle: 6 * time.Second, readMillis: 300, items: 1_000_000}
	if len(arguments)%2 != 0 {
		fail(fmt.Errorf("options are pairs of name and value"))
	}
	for i := 0; i < len(arguments); i += 2 {
		value := arguments[i+1]
		switch arguments[i] {
		case "--server":
			o.server = value
		case "--work":
			o.work = value
		case "--setting":
			o.setting = value
		case "--scenario":
			o.scenario = value
		case "--count":
			o.count = number(value)
		case "--updates":
			o.updates = number(value)
		case "--churn":
			o.churn = number(value)
		case "--handlers":
			o.handlers = number(value)
		case "--relist":
			o.relist = value != "0"
		case "--settle":
			o.settle = time.Duration(number(value)) * time.Millisecond
		case "--read-millis":
			o.readMillis = number(value)
		case "--items":
			o.items = number(value)
		case "--deeper":
			o.deeper = value != "0"
		case "--depth": // everything is decoded before a handler is called
		case "--rates":
			for _, each := range strings.Split(value, ",") {
				if perSecond, count, found := strings.Cut(each, "x"); found {
					o.rates = append(o.rates, rate{number(perSecond), number(count)})
				}
			}
		default:
			fail(fmt.Errorf("no such option: %s", arguments[i]))
		}
	}
	return o
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	fail(err)
	return n
}
