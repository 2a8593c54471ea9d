// Reads PromQL, an expression a line, and prints for each a line of JSON: the metrics that it selects, and the
// labels that it matches or groups by. One that cannot be parsed ends it, with the reason.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

type names struct {
	Metrics []string `json:"metrics"`
	Labels  []string `json:"labels"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		found, err := read(lines.Text())
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", lines.Text(), err)
			os.Exit(1)
		}
		line, err := json.Marshal(found)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
}

func read(text string) (names, error) {
	found := names{Metrics: []string{}, Labels: []string{}}
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return found, err
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			for _, matcher := range node.LabelMatchers {
				if matcher.Name == labels.MetricName {
					found.Metrics = append(found.Metrics, matcher.Value)
				} else {
					found.Labels = append(found.Labels, matcher.Name)
				}
			}
		case *parser.AggregateExpr:
			found.Labels = append(found.Labels, node.Grouping...)
		}
		return nil
	})
	return found, nil
}
