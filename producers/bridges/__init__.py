"""What robots say over ROS and MQTT, as steps: one bridge for each protocol, behind one signal mapping."""
