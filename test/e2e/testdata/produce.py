"""produce.py BROKERS TOPIC [MILLISECONDS]: writes the lines of standard input with acks=all, with a pause between them."""
import sys
import time

from kafka import KafkaProducer

brokers, topic = sys.argv[1].split(","), sys.argv[2]
pause = float(sys.argv[3]) / 1000 if len(sys.argv) > 3 else 0
# one request at a time keeps the order through retries
producer = KafkaProducer(bootstrap_servers=brokers, acks="all", retries=1000, retry_backoff_ms=50,
                         max_in_flight_requests_per_connection=1, request_timeout_ms=10000)
futures = []
for line in sys.stdin.buffer:
    futures.append(producer.send(topic, value=line.rstrip(b"\n")))
    if pause:
        time.sleep(pause)
producer.flush()
for future in futures:
    future.get(timeout=60)
print(len(futures))
